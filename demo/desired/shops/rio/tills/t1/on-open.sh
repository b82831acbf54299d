#!/bin/sh
# Runs on the till when the shop opens.
set -eu
drawer --count --expect 200.00
printer --test-page
