#!/bin/sh
# Makes the secrets that docker-compose.yml gives to its services, in ./secrets or the directory named.
# What exists stays as it is, so that running it again is safe.
set -eu
directory=${1:-secrets}

# the directory keeps other users out; the files are readable because containers read them as users of their own
umask 022
mkdir -p "$directory"
chmod 700 "$directory"

random_hex() {
  od -An -N"$1" -tx1 /dev/urandom | tr -d ' \n'
}

make() {
  if [ -e "$directory/$1" ]; then
    echo "$directory/$1 exists"
  else
    printf '%s\n' "$2" >"$directory/$1"
    echo "$directory/$1 made"
  fi
}

make master-key "$(head -c 32 /dev/urandom | base64)"
make operator-token "op_$(random_hex 32)"
make postgres-password "$(random_hex 24)"
