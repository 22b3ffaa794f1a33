#!/usr/bin/env bash
# The tests need two programs that pip can't bring: Chromium and Nsight Systems.
# As root on Debian or Ubuntu they are installed; otherwise a sentence names what is missing.
set -euo pipefail

missing=()
command -v chromium >/dev/null || missing+=(chromium)
command -v nsys >/dev/null || missing+=(nsight-systems)
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  echo "The tests need these Debian packages, which are not installed: ${missing[*]}." \
       "Install them and run this again: sudo apt-get install ${missing[*]}" \
       "(nsight-systems is in the non-free component)." >&2
  exit 1
fi

# nsight-systems is in non-free: the same mirror and key as the distribution's own list, one component more.
if [[ " ${missing[*]} " == *" nsight-systems "* ]]; then
  sources=/etc/apt/sources.list.d/debian.sources
  if [ -f $sources ]; then
    sed -E 's/^Components:.*/Components: contrib non-free/' $sources > /etc/apt/sources.list.d/jaxprof-tests.sources
  elif [ -f /etc/apt/sources.list ]; then
    sed -nE 's/^(deb .*[^ ]) +main\b.*$/\1 contrib non-free/p' /etc/apt/sources.list \
      > /etc/apt/sources.list.d/jaxprof-tests.list
  fi
fi

export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
echo "Installing ${missing[*]} (nsight-systems is about 560 MB) ..."
for attempt in 1 2 3; do
  if { apt-get update -q && apt-get install -y -q --no-install-recommends "${missing[@]}" fonts-dejavu-core; } > "$log" 2>&1; then
    rm -f "$log"
    exit 0
  fi
  sleep $((attempt * 5))
done
tail -n 20 "$log" >&2
echo "apt-get could not install ${missing[*]}; its last lines stand above." >&2
exit 1
