"""Stands for Slack: writes "STATUS ALERTNAME GROUP" of each alert that Alertmanager sends to the file
named by the second argument; the first is the port on the loopback interface. GET / serves the file
named by the third, as another exporter would."""

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with open(sys.argv[2], "a") as log:
            for alert in body["alerts"]:
                labels = alert["labels"]
                print(alert["status"], labels["alertname"], labels.get("group", "-"), file=log)
        self.send_response(200)
        self.end_headers()

    def do_GET(self):
        with open(sys.argv[3], "rb") as file:
            body = file.read()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
