/*
 * `cuota exporter`: the metrics over HTTP for Prometheus. Reads only, keeps nothing between two scrapes but
 * two counters, and listens on the loopback interface unless told otherwise.
 */
#include "cli.h"

#include <errno.h>

#include <netdb.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/size.h"
#include "metrics.h"
#include "mhd.h"
#include "nvml.h"

#define DEFAULT_ADDRESS "127.0.0.1:9459"
#define IDLE_SECONDS	10
#define CONNECTIONS_MAX 64

static const struct argp_option options[] = {
	{"listen", 'l', "ADDRESS:PORT", 0, "where to listen (default " DEFAULT_ADDRESS ")", 0},
	{"web.listen-address", 'l', NULL, OPTION_ALIAS, NULL, 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	const char **address = state->input;

	if (key == 'l') {
		*address = arg;
		return 0;
	}
	if (key == ARGP_KEY_ARG)
		argp_error(state, "'%s' is no option", arg);
	return ARGP_ERR_UNKNOWN;
}

/* "127.0.0.1:9459", "[::1]:9459", "localhost:9459", ":9459" (every interface). */
static int resolve(const char *text, struct addrinfo **ret, struct error *err)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
	const char *colon = strrchr(text, ':');
	char host[256];
	size_t length;
	uint64_t port;
	int rc;

	if (!colon || !colon[1])
		return error_set(err, EINVAL, "'%s': write ADDRESS:PORT", text);
	/* getaddrinfo() takes a larger number for what is left of it in 16 bits. */
	if (!colon[1 + strspn(colon + 1, "0123456789")] &&
	    number_parse(colon + 1, 0, UINT16_MAX, &port, NULL))
		return error_set(err, EINVAL, "'%s': a port is 65535 at most", text);
	length = (size_t)(colon - text);
	if (length >= 2 && text[0] == '[' && colon[-1] == ']') {
		text++;
		length -= 2;
	}
	if (length >= sizeof(host))
		return error_set(err, EINVAL, "the address is too long");
	memcpy(host, text, length);
	host[length] = '\0';
	rc = getaddrinfo(length ? host : NULL, colon + 1, &hints, ret);
	return rc ? error_set(err, EINVAL, "'%s': %s", text, gai_strerror(rc)) : 0;
}

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, const char *type,
			      char *body, size_t bytes, enum MHD_ResponseMemoryMode mode)
{
	struct MHD_Response *response = mhd.create_response_from_buffer(bytes, body, mode);
	enum MHD_Result rc;

	if (!response)
		return MHD_NO;
	mhd.add_response_header(response, "Content-Type", type);
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		mhd.add_response_header(response, "Allow", "GET, HEAD");
	rc = mhd.queue_response(connection, status, response);
	mhd.destroy_response(response);
	return rc;
}

static enum MHD_Result answer_text(struct MHD_Connection *connection, unsigned status,
				   const char *type, const char *text)
{
	return answer(connection, status, type, (char *)text, strlen(text), MHD_RESPMEM_PERSISTENT);
}

static enum MHD_Result answer_metrics(struct MHD_Connection *connection)
{
	const char *accept = mhd.lookup_connection_value(connection, MHD_HEADER_KIND, "Accept");
	int open = accept && strstr(accept, "application/openmetrics-text");
	char *body = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&body, &bytes);

	if (!out)
		return MHD_NO;
	metrics_write(out, open ? METRICS_OPENMETRICS : METRICS_TEXT);
	if (fclose(out)) {
		free(body);
		return MHD_NO;
	}
	return answer(connection, MHD_HTTP_OK, open ? METRICS_OPENMETRICS_TYPE : METRICS_TEXT_TYPE,
		      body, bytes, MHD_RESPMEM_MUST_FREE);
}

static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *upload,
			      size_t *upload_bytes, void **state)
{
	(void)context;
	(void)version;
	(void)upload;
	(void)state;
	if (strcmp(method, "GET") && strcmp(method, "HEAD")) {
		*upload_bytes = 0;
		return answer_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "text/plain",
				   "GET only\n");
	}
	if (!strcmp(url, "/metrics"))
		return answer_metrics(connection);
	if (!strcmp(url, "/-/healthy") || !strcmp(url, "/-/ready"))
		return answer_text(connection, MHD_HTTP_OK, "text/plain",
				   "cuota exporter is healthy.\n");
	if (!strcmp(url, "/"))
		return answer_text(connection, MHD_HTTP_OK, "text/html",
				   "<!DOCTYPE html><title>cuota exporter</title>"
				   "<h1>cuota exporter</h1><a href=\"/metrics\">metrics</a>\n");
	return answer_text(connection, MHD_HTTP_NOT_FOUND, "text/plain", "not found\n");
}

static struct MHD_Daemon *start(const struct addrinfo *where)
{
	unsigned flags =
		MHD_USE_AUTO_INTERNAL_THREAD | (where->ai_family == AF_INET6 ? MHD_USE_IPv6 : 0);

	return mhd.start_daemon(flags, 0, NULL, NULL, handle, NULL, MHD_OPTION_SOCK_ADDR,
				where->ai_addr, MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS,
				MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX, MHD_OPTION_END);
}

int command_exporter(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Serves /metrics for Prometheus until it is told to end.",
	};
	const char *address = DEFAULT_ADDRESS;
	struct addrinfo *where = NULL;
	struct MHD_Daemon *server;
	struct error err = {""};
	sigset_t ends;
	int got;

	cli_parse(&argp, argc, argv, CLI_USAGE, &address);
	if (resolve(address, &where, &err)) {
		cli_error("--listen %s", err.text);
		return CLI_USAGE;
	}
	if (mhd_load(&err)) {
		freeaddrinfo(where);
		cli_error("%s", err.text);
		return CLI_FAILED;
	}
	/* Blocked before the server's thread exists, which inherits it: they are for sigwait alone. */
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	signal(SIGPIPE, SIG_IGN);
	server = start(where);
	freeaddrinfo(where);
	if (!server) {
		cli_error("cannot listen on %s: %s", address, strerror(errno));
		return CLI_FAILED;
	}
	fprintf(stderr, "%s: listening on %s\n", cli_name, address);
	sigwait(&ends, &got);
	mhd.stop_daemon(server);
	nvml_close();
	return CLI_OK;
}
