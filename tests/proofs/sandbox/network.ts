import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Escape } from './escapes.ts'
import type { Machine } from './machine.ts'

/** Both lead to this machine. A rule allows only the first one. */
export const hosts = { allowed: 'ok.example', other: 'other.example' }

/** What the server of the allowed host answers. */
export const greeting = 'GREETING-7a'

/** The server of the allowed host. */
export async function openAllowed(): Promise<AsyncDisposable & { port: number }> {
  const server = createServer((_, response) => response.end(greeting)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: async () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** Attempts of a command with a proxy to reach something else than the allowed host. */
export function throughProxy({ ports: { tcp, address } }: Machine, allowedPort: number): Escape[] {
  const places = [
    hosts.other,
    `${hosts.allowed}.${hosts.other}`,
    '127.0.0.1',
    '127.0.0.2',
    address,
    'localhost',
    '0.0.0.0',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '2130706433',
    '127.1',
    '0x7f000001',
    '017700000001',
    'localhost.',
  ]
  const raw = (bytes: string): string =>
    `p=\${HTTP_PROXY##*@}; exec 3<>/dev/tcp/\${p%:*}/\${p#*:}; printf '${bytes}' >&3; timeout 2 cat <&3`
  const end = String.raw`HTTP/1.1\r\nHost: ${hosts.allowed}\r\nConnection: close\r\n\r\n`
  return [
    ...places.map((host) => `curl -s -m 3 --noproxy '' http://${host}:${tcp}/`),
    ...places.map((host) => `curl -s -m 3 --noproxy '' -p http://${host}:${tcp}/`),
    // Names that a filter and a resolver read differently.
    raw(String.raw`CONNECT ${hosts.allowed}\0.${hosts.other}:${tcp} ${end}`),
    raw(String.raw`CONNECT ${hosts.other}\0${hosts.allowed}:${tcp} ${end}`),
    raw(String.raw`GET http://${hosts.other}\0.${hosts.allowed}:${tcp}/ ${end}`),
    raw(`GET http://${hosts.allowed}@127.0.0.1:${tcp}/ ${end}`),
    raw(`GET http://${hosts.allowed}%%00@127.0.0.1:${tcp}/ ${end}`),
    raw(String.raw`GET http://127.0.0.1:${tcp}\\@${hosts.allowed}:${allowedPort}/ ${end}`),
    raw(
      String.raw`GET http://${hosts.allowed}:${allowedPort}/ HTTP/1.1\r\nHost: 127.0.0.1:${tcp}\r\nConnection: close\r\n\r\n`,
    ),
    raw(
      String.raw`GET http://${hosts.allowed}:${allowedPort}/ HTTP/1.1\r\nHost: a\r\n\r\nGET http://127.0.0.1:${tcp}/ ${end}`,
    ),
    raw(`GET /${end}`),
    raw(`CONNECT 169.254.169.254:80 ${end}`),
    `curl -s -m 3 -x "http://call@\${HTTP_PROXY##*@}" http://${hosts.other}:${tcp}/`,
    `curl -s -m 3 -x "socks5h://\${HTTP_PROXY##*@}" http://${hosts.other}:${tcp}/`,
    `curl -s -m 3 --resolve ${hosts.allowed}:${tcp}:127.0.0.1 --noproxy '*' http://${hosts.allowed}:${tcp}/`,
    `python3 -c "import socket;print(socket.getaddrinfo('${hosts.allowed}',80));print('ESCAPED')"`,
    `python3 -c "import socket;s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM);s.sendto(b'x',('${address}',53));print('ESCAPED')"`,
    `python3 -c "import socket;s=socket.socket(socket.AF_INET6,socket.SOCK_DGRAM);s.sendto(b'x',('2001:db8::1',53));print('ESCAPED')"`,
    `for f in /proc/*/fd/* /proc/*/ns/net; do nsenter --net=$f true 2>/dev/null && echo ESCAPED; done`,
    `ip link add d type dummy && echo ESCAPED; ip route add default dev lo && echo ESCAPED`,
    `find / -xdev -name keeper.sock 2>/dev/null | grep . && echo ESCAPED`,
  ].map((command) => ({ what: 'network with a proxy', command }))
}

/** The processes that keep a network with a folder in this one. */
export function keepersIn(folder: string): number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids.filter((pid) => isKeeper(pid, folder)).map(Number)
}

function isKeeper(pid: string, folder: string): boolean {
  try {
    if (!readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('network-keeper-process')) return false
    return readdirSync(`/proc/${pid}/fd`).some((fd) => linkOf(`/proc/${pid}/fd/${fd}`).startsWith(folder))
  } catch {
    return false
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}
