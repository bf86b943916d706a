#!/usr/bin/env bash
# Starts PostgreSQL, MariaDB and Redis from Debian's packages on the loopback address, and prints the address of each
# as NAME=value.  What already runs is left alone.  Everything is kept in one folder under /var/tmp.
#
#   services.sh start [postgres|mariadb|redis ...]     all of them where none is named
#   services.sh stop [...]
#   services.sh kill [...]                             at once, as in a crash
#   services.sh restart [...]
set -euo pipefail

folder=${REACTFLOW_SERVICES_DIR:-/var/tmp/reactflow-services}
postgres_port=${REACTFLOW_POSTGRES_PORT:-15432}
mariadb_port=${REACTFLOW_MARIADB_PORT:-13306}
redis_port=${REACTFLOW_REDIS_PORT:-16379}

fail() {
    echo "services.sh: $*" >&2
    exit 1
}

installed() { dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null | grep -qx installed; }

install() {
    local missing=() package
    for package in "$@"; do installed "$package" || missing+=("$package"); done
    [ ${#missing[@]} = 0 ] && return
    command -v apt-get >/dev/null || fail "needs Debian's apt-get to install ${missing[*]}"
    [ "$(id -u)" = 0 ] || fail "must be root to install ${missing[*]}; run: sudo apt-get install ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    # The packages' own servers stay off: only ours, on our ports, are started.
    printf '#!/bin/sh\nexit 101\n' >"$folder/policy"
    chmod +x "$folder/policy"
    local policy=/usr/sbin/policy-rc.d ours=0
    [ -e $policy ] || { cp "$folder/policy" $policy && ours=1; }
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >"$folder/apt.log" 2>&1 || {
        tail -n 20 "$folder/apt.log" >&2
        [ $ours = 0 ] || rm -f $policy
        fail "apt-get could not install ${missing[*]}"
    }
    [ $ours = 0 ] || rm -f $policy
}

as_user() { # servers refuse to run as root
    local user=$1
    shift
    if [ "$(id -u)" = 0 ]; then runuser -u "$user" -- "$@"; else "$@"; fi
}

own() { [ "$(id -u)" != 0 ] || chown -R "$1": "$2"; }

wait_for() { # NAME LOG COMMAND...: up to 60 s
    local name=$1 log=$2 _
    shift 2
    for _ in $(seq 300); do
        if "$@" >/dev/null 2>&1; then return; fi
        sleep 0.2
    done
    tail -n 20 "$log" >&2 || true
    fail "$name did not come up within 60 s"
}

end() { # PIDFILE SIGNAL: end the server and wait until it is gone
    local pid _
    pid=$(head -n 1 "$1" 2>/dev/null) || return 0
    # a number that a crash left behind may belong to another process by now
    grep -qE 'postgres|mariadbd|redis-server' "/proc/$pid/comm" 2>/dev/null || return 0
    kill -"$2" "$pid" 2>/dev/null || return 0
    for _ in $(seq 300); do
        kill -0 "$pid" 2>/dev/null || return 0
        sleep 0.1
    done
    fail "process $pid does not end"
}

postgres_bin() { ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1; }

postgres_ready() { "$(postgres_bin)/pg_isready" -q -h 127.0.0.1 -p "$postgres_port"; }

start_postgres() {
    install postgresql
    local home=$folder/postgres bin
    bin=$(postgres_bin)
    if ! postgres_ready; then
        if [ ! -e "$home/data/PG_VERSION" ]; then
            rm -rf "$home" && mkdir -p "$home" && own postgres "$home"
            as_user postgres "$bin/initdb" -D "$home/data" -U postgres -A trust -E UTF8 --locale=C >"$folder/initdb.log" 2>&1 ||
                { cat "$folder/initdb.log" >&2 && fail "initdb failed"; }
        fi
        rm -f "$home/data/postmaster.pid" # left behind by a crash; no server answers
        as_user postgres "$bin/postgres" -D "$home/data" -h 127.0.0.1 -p "$postgres_port" -k "$home" \
            -c max_connections=400 </dev/null >>"$home/log" 2>&1 &
        disown
        wait_for PostgreSQL "$home/log" postgres_ready
    fi
    local sql=("$bin/psql" -h 127.0.0.1 -p "$postgres_port" -U postgres -qAt)
    [ "$("${sql[@]}" -c "select 1 from pg_database where datname = 'reactflow'")" = 1 ] ||
        "${sql[@]}" -c 'create database reactflow' >/dev/null
    echo "REACTFLOW_TEST_POSTGRES_URL=postgresql://postgres@127.0.0.1:$postgres_port/reactflow"
}

mariadb_ready() { mariadb-admin --no-defaults -h 127.0.0.1 -P "$mariadb_port" -u reactflow --password=reactflow ping; }

start_mariadb() {
    install mariadb-server
    local home=$folder/mariadb
    if ! mariadb_ready >/dev/null 2>&1; then
        if [ ! -e "$home/data/mysql" ]; then
            rm -rf "$home" && mkdir -p "$home" && own mysql "$home"
            as_user mysql mariadb-install-db --no-defaults --datadir="$home/data" --skip-test-db \
                --auth-root-authentication-method=normal >"$folder/install-db.log" 2>&1 ||
                { cat "$folder/install-db.log" >&2 && fail "mariadb-install-db failed"; }
            printf '%s\n' 'create database reactflow character set utf8mb4;' \
                "create user reactflow@'127.0.0.1' identified by 'reactflow';" \
                "grant all on *.* to reactflow@'127.0.0.1';" >"$home/init.sql"
            own mysql "$home"
        fi
        as_user mysql "$(command -v mariadbd || echo /usr/sbin/mariadbd)" --no-defaults --datadir="$home/data" \
            --bind-address=127.0.0.1 --port="$mariadb_port" --socket="$home/socket" --pid-file="$home/pid" \
            --max-connections=400 --skip-name-resolve --character-set-server=utf8mb4 \
            $([ -e "$home/ready" ] || echo "--init-file=$home/init.sql") </dev/null >>"$home/log" 2>&1 &
        disown
        wait_for MariaDB "$home/log" mariadb_ready
        touch "$home/ready"
    fi
    echo "REACTFLOW_TEST_MARIADB_URL=mysql://reactflow:reactflow@127.0.0.1:$mariadb_port/reactflow"
}

redis_ready() { redis-cli -h 127.0.0.1 -p "$redis_port" ping 2>/dev/null | grep -qx PONG; }

start_redis() {
    install redis-server
    local home=$folder/redis
    if ! redis_ready; then
        mkdir -p "$home"
        redis-server --bind 127.0.0.1 --port "$redis_port" --dir "$home" --appendonly yes --appendfsync everysec \
            --save "" --pidfile "$home/pid" --maxclients 2000 --daemonize no </dev/null >>"$home/log" 2>&1 &
        disown
        wait_for Redis "$home/log" redis_ready
    fi
    echo "REACTFLOW_TEST_REDIS_URL=redis://127.0.0.1:$redis_port/0"
}

pidfile() {
    case $1 in
    postgres) echo "$folder/postgres/data/postmaster.pid" ;;
    mariadb) echo "$folder/mariadb/pid" ;;
    redis) echo "$folder/redis/pid" ;;
    esac
}

stop() { # INT is a fast shutdown for PostgreSQL, TERM for the others
    case $1 in
    postgres) end "$(pidfile postgres)" INT ;;
    *) end "$(pidfile "$1")" TERM ;;
    esac
}

command=${1:-}
shift || true
[ $# -gt 0 ] || set -- postgres mariadb redis
for name in "$@"; do
    case $name in postgres | mariadb | redis) ;; *) fail "no service is called '$name'" ;; esac
done
mkdir -p "$folder"
chmod 755 "$folder"
for name in "$@"; do
    case $command in
    start) "start_$name" ;;
    stop) stop "$name" ;;
    kill) end "$(pidfile "$name")" KILL ;;
    restart) # in a subshell, or bash would keep our output open in the server
        stop "$name"
        ("start_$name") >/dev/null
        ;;
    *) fail "say start, stop, kill or restart" ;;
    esac
done
