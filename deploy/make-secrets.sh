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

# make NAME LENGTH VALUE: a value of another length means that a program it is made with is missing or failed
make() {
  if [ -s "$directory/$1" ]; then
    echo "$directory/$1 exists"
  elif [ ${#3} -ne "$2" ]; then
    echo "$directory/$1 was not made: head, od, tr or base64 is missing or failed" >&2
    exit 1
  else
    printf '%s\n' "$3" >"$directory/$1"
    echo "$directory/$1 made"
  fi
}

make master-key 44 "$(head -c 32 /dev/urandom | base64)"
make operator-token 67 "op_$(random_hex 32)"
make postgres-password 48 "$(random_hex 24)"
