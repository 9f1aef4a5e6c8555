"""A notebook without a browser: starts the user's server through the hub, opens a kernel, runs code in
it and prints what the code prints.

notebook.py HUB TOKEN USER CODE-FILE [KEEP-SECONDS]
"""

import json
import sys
import time
import uuid

from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest
from tornado.ioloop import IOLoop
from tornado.websocket import websocket_connect

HUB, TOKEN, USER, CODE = sys.argv[1:5]
KEEP = float(sys.argv[5]) if len(sys.argv) > 5 else 0
HEADERS = {"Authorization": f"token {TOKEN}", "Content-Type": "application/json"}


async def call(method, path, body=None):
    request = HTTPRequest(HUB + path, method=method, headers=HEADERS, body=body,
                          allow_nonstandard_methods=True, request_timeout=60)
    return await AsyncHTTPClient().fetch(request)


async def start_server():
    try:
        await call("POST", f"/hub/api/users/{USER}", "")
    except HTTPClientError as error:
        if error.code != 409:  # there already
            raise
    try:
        await call("POST", f"/hub/api/users/{USER}/server", "{}")
    except HTTPClientError as error:
        if error.code != 400:  # it runs already
            raise
    for _ in range(300):
        user = json.loads((await call("GET", f"/hub/api/users/{USER}")).body)
        if user["servers"].get("", {}).get("ready"):
            return
        time.sleep(0.1)
    raise SystemExit("the server did not start")


async def run(code):
    kernel = json.loads((await call("POST", f"/user/{USER}/api/kernels", "{}")).body)["id"]
    url = HUB.replace("http", "ws") + f"/user/{USER}/api/kernels/{kernel}/channels"
    socket = await websocket_connect(HTTPRequest(url, headers=HEADERS))
    message = uuid.uuid4().hex
    await socket.write_message(json.dumps({
        "channel": "shell", "parent_header": {}, "metadata": {},
        "header": {"msg_id": message, "msg_type": "execute_request", "username": USER,
                   "session": uuid.uuid4().hex, "version": "5.3"},
        "content": {"code": code, "silent": False, "store_history": False},
    }))
    while True:
        reply = json.loads(await socket.read_message())
        if reply["parent_header"].get("msg_id") != message:
            continue
        if reply["msg_type"] == "stream":
            print(reply["content"]["text"], end="", flush=True)
        elif reply["msg_type"] == "error":
            raise SystemExit("\n".join(reply["content"]["traceback"]))
        elif reply["msg_type"] == "status" and reply["content"]["execution_state"] == "idle":
            socket.close()
            return


async def main():
    await start_server()
    with open(CODE) as file:
        await run(file.read())
    time.sleep(KEEP)


IOLoop.current().run_sync(main)
