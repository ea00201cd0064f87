#!/bin/bash
# Ends with 0 when http://127.0.0.1:PORT/PATH answers 200: healthcheck.sh 8765 /readyz
#
# bash and its own /dev/tcp, because the check runs inside the memory limit that it watches over: a Python would take
# 7 MB of a station's 512 every few seconds, this takes 0.2.
readonly port=$1 path=$2 timeout_s=3

exec 3<>"/dev/tcp/127.0.0.1/$port" || exit 1
printf 'GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' "$path" >&3
read -r -t "$timeout_s" -u 3 _version status _reason
[ "$status" = 200 ]
