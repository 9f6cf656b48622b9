#!/bin/sh
# Installs what the servers of the tests need and a bare Debian lacks. Run by root; what is there
# already stays as it is, and no service is started.
set -eu

wanted="postgresql mariadb-server debootstrap pgbouncer redis-server"
missing=""
for package in $wanted; do
  status=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
  echo "Installing$missing needs root on a Debian: install them by other means" >&2
  exit 1
fi

# Packages ask this program before they start a service; 101 forbids it.
policy=/usr/sbin/policy-rc.d
log=$(mktemp)
own_policy=""
finish() {
  status=$?
  [ -z "$own_policy" ] || rm -f "$policy"
  [ "$status" = 0 ] || tail -n 40 "$log" >&2
  rm -f "$log"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
if [ ! -e "$policy" ]; then
  own_policy=yes
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
fi

echo "Installing$missing"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq >"$log" 2>&1
# shellcheck disable=SC2086 # one word for each package
apt-get install -qq --yes --no-install-recommends $missing >"$log" 2>&1
