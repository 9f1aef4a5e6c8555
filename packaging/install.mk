# Installing and packing: included by the Makefile.
#
#   make install [DESTDIR=] [PREFIX=/usr/local] [LIBDIR=$(PREFIX)/lib]     needs no root under DESTDIR
#   make uninstall                                                       the same variables
#   make dist           the sources, build/cuota-VERSION.tar.gz
#   make tarball        a relocatable tree for sites without root, with an Lmod module file
#   make deb            Debian packages, build-deb/*.deb
#
# INSTALLED is the one list of what install puts where (mode:source:destination); uninstall and the tests
# read the same list.

MULTIARCH  ?= $(shell $(CC) -print-multiarch 2>/dev/null)
BINDIR     ?= $(PREFIX)/bin
DATADIR    ?= $(PREFIX)/share
MANDIR     ?= $(DATADIR)/man
INCLUDEDIR ?= $(PREFIX)/include
SYSCONFDIR ?= $(if $(filter /usr /usr/local,$(PREFIX)),/etc,$(PREFIX)/etc)
TMPFILESDIR ?= $(PREFIX)/lib/tmpfiles.d
UNITDIR    ?= $(PREFIX)/lib/systemd/system
SPANKDIR   ?= $(LIBDIR)/slurm-wlm
COMPDIR    ?= $(DATADIR)/bash-completion/completions

G := $(O)/generated

EXAMPLES := $(patsubst examples/%,%,$(shell find examples -type f ! -name '*.pyc' 2>/dev/null | sort))

INSTALLED := \
	755:$(O)/cuota:$(BINDIR)/cuota \
	644:$(O)/libcuota.so:$(LIBDIR)/libcuota.so.0 \
	link:libcuota.so.0:$(LIBDIR)/libcuota.so \
	644:include/cuota.h:$(INCLUDEDIR)/cuota.h \
	644:$(G)/cuota.pc:$(LIBDIR)/pkgconfig/cuota.pc \
	644:man/cuota.1:$(MANDIR)/man1/cuota.1 \
	644:man/cuota.conf.5:$(MANDIR)/man5/cuota.conf.5 \
	644:$(G)/libcuota.7:$(MANDIR)/man7/libcuota.7 \
	644:completions/cuota.bash:$(COMPDIR)/cuota \
	644:packaging/cuota.conf:$(SYSCONFDIR)/cuota/cuota.conf \
	644:packaging/tmpfiles.conf:$(TMPFILESDIR)/cuota.conf \
	644:$(G)/cuota-exporter.service:$(UNITDIR)/cuota-exporter.service \
	$(foreach e,$(EXAMPLES),644:examples/$(e):$(DATADIR)/cuota/$(e)) \
	$(if $(SPANK_H),644:$(O)/cuota_spank.so:$(SPANKDIR)/cuota_spank.so)

.PHONY: man generated install uninstall installed-files dist tarball deb

man: $(G)/libcuota.7 ## the man page that is made from env.def

$(G)/libcuota.7: man/libcuota.7.in src/base/env.def packaging/environment.awk
	@mkdir -p $(@D)
	@awk -v what=ENV -f packaging/environment.awk src/base/env.def > $@.env
	@awk -v what=ALIAS -f packaging/environment.awk src/base/env.def > $@.alias
	@sed -e '/^@ENVIRONMENT@$$/{r $@.env' -e 'd}' -e '/^@ALIASES@$$/{r $@.alias' -e 'd}' $< > $@
	@rm $@.env $@.alias

# What holds a directory is made anew each time: PREFIX may be another.
.PHONY: FORCE
$(G)/cuota.pc: packaging/cuota.pc.in FORCE
	@mkdir -p $(@D)
	@sed 's|@PREFIX@|$(PREFIX)|;s|@LIBDIR@|$(LIBDIR)|;s|@INCLUDEDIR@|$(INCLUDEDIR)|;s|@VERSION@|$(VERSION)|' $< > $@

$(G)/cuota-exporter.service: packaging/cuota-exporter.service.in FORCE
	@mkdir -p $(@D)
	@sed 's|@BINDIR@|$(BINDIR)|' $< > $@

generated: $(G)/libcuota.7 $(G)/cuota.pc $(G)/cuota-exporter.service

# An installed policy is the admin's: it is never written over and never removed.
install: $(O)/cuota $(O)/libcuota.so $(if $(SPANK_H),$(O)/cuota_spank.so) generated ## to DESTDIR and PREFIX
	@set -e; for f in $(INSTALLED); do \
		mode=$${f%%:*}; rest=$${f#*:}; from=$${rest%%:*}; to="$(DESTDIR)$${rest#*:}"; \
		mkdir -p "$$(dirname "$$to")"; \
		case $$from in examples/*) [ ! -x "$$from" ] || mode=755 ;; esac; \
		case "$$mode:$$to" in \
		link:*) ln -sfn "$$from" "$$to" ;; \
		*/cuota/cuota.conf) [ -e "$$to" ] || install -m "$$mode" "$$from" "$$to" ;; \
		*) install -m "$$mode" "$$from" "$$to" ;; \
		esac; \
	done

uninstall: ## what install put there, but the policy
	@set -e; for f in $(INSTALLED); do \
		rest=$${f#*:}; to="$(DESTDIR)$${rest#*:}"; \
		case "$$to" in \
		*/cuota/cuota.conf) ;; \
		*) rm -f "$$to" ;; \
		esac; \
	done
	@for e in $(sort $(dir $(EXAMPLES))); do \
		rmdir -p --ignore-fail-on-non-empty "$(DESTDIR)$(DATADIR)/cuota/$$e" 2>/dev/null || true; done

# For tests: one destination a line.
installed-files:
	@printf '%s\n' $(foreach f,$(INSTALLED),$(lastword $(subst :, ,$(f))))

dist: ## the sources as a tarball
	@mkdir -p $(O)
	git archive --format=tar.gz --prefix=cuota-$(VERSION)/ -o $(O)/cuota-$(VERSION).tar.gz HEAD

# Any directory will do: `cuota run` finds the library beside itself.
tarball: ## a relocatable tree with an Lmod module file
	@rm -rf $(O)-tarball
	@$(MAKE) --no-print-directory install DESTDIR=$(O)-tarball/root PREFIX=/cuota-$(VERSION) \
		LIBDIR=/cuota-$(VERSION)/lib O=$(O)
	@mkdir -p $(O)-tarball/root/cuota-$(VERSION)/modulefiles/cuota
	@sed 's|@VERSION@|$(VERSION)|' packaging/module.lua > \
		$(O)-tarball/root/cuota-$(VERSION)/modulefiles/cuota/$(VERSION).lua
	@cp LICENSE $(O)-tarball/root/cuota-$(VERSION)/
	tar -C $(O)-tarball/root --owner=0 --group=0 -czf \
		$(O)/cuota-$(VERSION)-linux-$(shell uname -m).tar.gz cuota-$(VERSION)

# Built from the committed sources in a tree of its own.
deb: ## Debian packages (needs debhelper)
	@packaging/build-deb $(O) $(VERSION)

.PHONY: clean-packaging
clean: clean-packaging
clean-packaging:
	rm -rf $(O)-deb $(O)-tarball
