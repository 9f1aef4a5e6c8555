#!/usr/bin/env bats
# A real JupyterHub with examples/jupyter/jupyterhub_config.py: each user's notebook server is a process of
# that Unix user, and what runs in a cell meets that user's cap. And a kernelspec with a cap.

load part.bash

setup_file()
{
	need jupyter || return 0
	need_root || return 0
	need_npm || return 0
	make_work jupyter
	test_user cuota-it-a
	test_user cuota-it-b
	hub_start
}

teardown_file()
{
	[ -n "${work:-}" ] || return 0
	stop "$(cat "$work/hub.pid" 2>/dev/null)"
	drop_test_users
	[ -n "${KEEP:-}" ] || rm -rf "$work"
}

setup()
{
	enter
}

# The example as it is, its table of users and paths replaced, plus what a test needs: no password, a
# token, ports of its own.
hub_start()
{
	cp "$root/tests/integration/cell.py" "$work/"
	cp "$examples/jupyter/jupyterhub_config.py" "$work/"
	sed -e "s|^LIBRARY = .*|LIBRARY = '$work/libcuota.so'|" -e "s|^LEDGERS = .*|LEDGERS = '$CUOTA_DIR'|" \
		-e 's|"alice": .*|"cuota-it-a": {"CUOTA_MEM": "8G"},|' -e 's|"@students"|"@pupils"|' \
		-e 's|"\*": .*|"*": {"CUOTA_MEM": "4G"},|' "$examples/jupyter/caps.py" >"$work/caps.py"
	cat >>"$work/jupyterhub_config.py" <<-END
	c.JupyterHub.bind_url = "http://127.0.0.1:18000"
	c.JupyterHub.hub_port = 18081
	c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:18001"
	c.ConfigurableHTTPProxy.command = ["$npm_dir/node_modules/.bin/configurable-http-proxy"]
	c.JupyterHub.db_url = "sqlite:///$work/hub.sqlite"
	c.JupyterHub.cookie_secret_file = "$work/secret"
	c.JupyterHub.authenticator_class = "dummy"
	c.JupyterHub.load_groups = {"pupils": ["cuota-it-c"]}
	c.JupyterHub.services = [{"name": "test", "api_token": "cuota-integration-test"}]
	c.JupyterHub.load_roles = [{
		"name": "test", "services": ["test"], "scopes": ["admin:users", "admin:servers", "access:servers"],
	}]
	c.Spawner.cmd = ["/usr/bin/jupyterhub-singleuser"]
	c.Spawner.args = ["--allow-root"]
	for name in ["LD_LIBRARY_PATH", "CUOTA_SIM_STATE", "CUOTA_SIM_MEMORY", "CUOTA_SIM_DEVICES"]:
	    c.Spawner.env_keep.append(name)
	END
	(cd "$work" && exec env PATH=/usr/bin:/bin:/usr/sbin:/sbin jupyterhub -f "$work/jupyterhub_config.py" \
		>"$work/hub.log" 2>&1 3>&- </dev/null) &
	echo $! >"$work/hub.pid"
	wait_for 40 curl -sf http://127.0.0.1:18000/hub/api/
}

notebook()
{
	/usr/bin/python3 "$root/tests/integration/notebook.py" http://127.0.0.1:18000 cuota-integration-test "$@"
}

@test "two users' notebooks each meet their own cap, at once" {
	notebook cuota-it-a cell.py 8 >a.log 2>&1 3>&- &
	first=$!
	notebook cuota-it-b cell.py 8 >b.log 2>&1 3>&- &
	second=$!
	wait_for 60 grep -q got_mib a.log
	wait_for 60 grep -q got_mib b.log
	[ "$(group_field jupyter-cuota-it-a .memory.cap_bytes)" -eq $((8 << 30)) ]
	[ "$(group_field jupyter-cuota-it-a .owner)" = cuota-it-a ]
	[ "$(group_field jupyter-cuota-it-b .memory.cap_bytes)" -eq $((4 << 30)) ]
	wait $first
	wait $second
	[ "$(field total_mib a.log)" -eq 8192 ]
	within 7000 8192 "$(field got_mib a.log)"
	[ "$(field total_mib b.log)" -eq 4096 ]
	within 3000 4096 "$(field got_mib b.log)"
	[ "$(field refused a.log)" -eq 2 ]
}

@test "a user's second kernel finds the cap used up by the first; restarted, the cap is free again" {
	notebook cuota-it-a cell.py >second.log
	[ "$(field got_mib second.log)" -eq 0 ]
	[ "$(field refused second.log)" -eq 2 ]
	for kernel in $(hub GET user/cuota-it-a/api/kernels | jq -r '.[].id'); do
		hub POST "user/cuota-it-a/api/kernels/$kernel/restart" >/dev/null
	done
	wait_for 20 eval '[ "$(group_field jupyter-cuota-it-a .memory.used_bytes)" = "" ]'
	notebook cuota-it-a cell.py >third.log
	within 7000 8192 "$(field got_mib third.log)"
}

hub()
{
	curl -sf -X "$1" -H 'Authorization: token cuota-integration-test' "http://127.0.0.1:18000/$2"
}

@test "a server whose library is missing does not start uncapped" {
	hub DELETE hub/api/users/cuota-it-b/server || true
	wait_for 20 eval '[ "$(hub GET hub/api/users/cuota-it-b | jq ".servers | length")" -eq 0 ]'
	mv libcuota.so away.so
	run hub POST hub/api/users/cuota-it-b/server
	mv away.so libcuota.so
	[ "$status" -ne 0 ]
	grep -q 'the server would run uncapped' hub.log
}

@test "caps by user, by group and for the rest" {
	cd "$examples/jupyter"
	run /usr/bin/python3 -c 'import caps
for user, groups in (("alice", []), ("eve", ["students"]), ("o'\''neil x", [])):
    e = caps.environment(user, groups); print(e["CUOTA_GROUP"], e["CUOTA_MEM"], e["CUOTA_SM"])'
	[ "${lines[0]}" = "jupyter-alice 16G 50" ]
	[ "${lines[1]}" = "jupyter-eve 4G 10" ]
	[ "${lines[2]}" = "jupyter-o-neil-x 8G 30" ]
}

@test "DockerSpawner's configuration mounts library and ledgers, and names the user's group" {
	run /usr/bin/python3 - "$examples/jupyter" <<-'END'
	import sys
	from types import SimpleNamespace
	from traitlets.config.loader import PyFileConfigLoader
	config = PyFileConfigLoader("jupyterhub_docker_config.py", path=sys.argv[1]).load_config()
	assert config.JupyterHub.spawner_class == "dockerspawner.DockerSpawner"
	spawner = SimpleNamespace(user=SimpleNamespace(name="eve", groups=[]), environment={})
	config.Spawner.pre_spawn_hook(spawner)
	mounts = [volume["bind"] for volume in config.DockerSpawner.volumes.values()]
	assert spawner.environment["LD_PRELOAD"] in mounts, (spawner.environment, mounts)
	assert spawner.environment["CUOTA_DIR"] in mounts
	assert spawner.environment["CUOTA_GROUP"] == "jupyter-eve"
	END
	[ "$status" -eq 0 ]
}

@test "a kernelspec's cap holds in its kernels" {
	mkdir -p share/jupyter/kernels
	cp -r "$examples/jupyter/kernels/python-8g" share/jupyter/kernels/
	sed -i "s|/usr/lib/x86_64-linux-gnu/libcuota.so|$work/libcuota.so|" share/jupyter/kernels/python-8g/kernel.json
	JUPYTER_PATH=$work/share/jupyter HOME=$work run /usr/bin/python3 -c '
from jupyter_client.manager import start_new_kernel
manager, client = start_new_kernel(kernel_name="python-8g")
client.execute_interactive(open("cell.py").read(), timeout=30)
manager.shutdown_kernel(now=True)'
	[ "$status" -eq 0 ]
	echo "$output" >kernel.log
	[ "$(field total_mib kernel.log)" -eq 8192 ]
	within 7000 8192 "$(field got_mib kernel.log)"
}
