/*
 * The metrics of one moment as text for Prometheus, for `cuota metrics` and `cuota exporter`.
 */
#ifndef CUOTA_CLI_METRICS_H
#define CUOTA_CLI_METRICS_H

#include <stdio.h>

enum metrics_format { METRICS_TEXT, METRICS_OPENMETRICS };

#define METRICS_TEXT_TYPE	 "text/plain; version=0.0.4; charset=utf-8"
#define METRICS_OPENMETRICS_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

/* Reads ledgers and NVML and writes every metric. 0 or -errno of the reading; even then what can be told of
 * the exporter itself is written. */
int metrics_write(FILE *out, enum metrics_format format);

#endif
