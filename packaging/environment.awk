# src/base/env.def as mdoc(7) list items, for libcuota(7): what=ENV the variables, what=ALIAS the others'.
$0 ~ "^" what "\\(" {
	row = $0
	sub("^" what "\\(", "", row)
	name = row
	sub(/,.*/, "", name)
	print ".It Ev " name
	if (what == "ALIAS") {
		sub(/^[^,]*, */, "", row)
		sub(/,.*/, "", row)
		print "Stands for"
		print ".Ev " row " ."
		next
	}
	# name, field, TYPE, "default", "help"
	n = split(row, part, "\"")
	help = part[4]
	for (i = 5; i < n; i++)
		help = help "\"" part[i]
	print help "."
	if (part[2] != "")
		print "Default: " part[2] "."
}
