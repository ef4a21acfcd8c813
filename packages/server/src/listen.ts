import { once } from 'node:events'
import { chmod, lstat, rm } from 'node:fs/promises'
import { createSocket } from 'node:dgram'
import { connect, isIPv4, isIPv6, type AddressInfo, type Server } from 'node:net'
import { hostname as systemHostname, networkInterfaces } from 'node:os'
import { pathToFileURL } from 'node:url'
import { isMainThread } from 'node:worker_threads'

/** Why a server must not listen at this address; undefined if it may. */
export function bindProblem(bind: { host: string; hasTls: boolean; allowInsecure: boolean }): string | undefined {
  const { host, hasTls, allowInsecure } = bind
  if (isLoopback(host) || hasTls || allowInsecure) return undefined
  return (
    `${host} is reachable from other machines, and without TLS tokens can be intercepted: ` +
    'configure a certificate, listen on 127.0.0.1, or set allowInsecure if a proxy in front of it does TLS.'
  )
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host)
}

/** All addresses of a machine: valid for listening, but not a name for clients. */
export function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || host === '::' || host === ''
}

/** How other machines can name this one. */
export interface MachineNames {
  /** In lower case, such as `laptop` and `laptop.local`. */
  names: string[]
  /** Without those of loopback and those that are valid only on one link. */
  addresses: string[]
}

export interface Machine {
  interfaces: ReturnType<typeof networkInterfaces>
  hostname: string
}

/** The names of this machine for a server that listens at `host`; none if that is a loopback address. */
export function machineNames(
  host: string,
  { interfaces, hostname }: Machine = { interfaces: networkInterfaces(), hostname: systemHostname() },
): MachineNames {
  if (isLoopback(host)) return { names: [], addresses: [] }
  const name = hostname.toLowerCase()
  const isName = /^[a-z0-9-]+(\.[a-z0-9-]+)*$/.test(name) && name !== 'localhost'
  const names = isName ? [...new Set([name, `${name.split('.', 1).join()}.local`])] : []
  if (!isWildcard(host)) return { names, addresses: [] }
  const addresses = Object.values(interfaces)
    .flatMap((each = []) => each)
    .filter(({ internal, address }) => !internal && !/^fe[89ab]/i.test(address))
    .map(({ address }) => address)
    .filter((address) => (host === '0.0.0.0' ? isIPv4(address) : true))
  return { names, addresses: [...addresses.filter(isIPv4), ...addresses.filter(isIPv6)] }
}

/**
 * The address from which this machine sends to the internet, first; then the others. A machine has many addresses, such as
 * those of virtual networks, and this one is the best guess for where a phone can reach it.
 */
export async function likelyFirst(addresses: readonly string[]): Promise<string[]> {
  const likely = [await outgoingAddress('udp4'), await outgoingAddress('udp6')]
  return [
    ...new Set([...likely.filter((each) => each !== undefined && addresses.includes(each)), ...addresses]),
  ] as string[]
}

/** Connecting a UDP socket sends nothing: the system only chooses the route. */
async function outgoingAddress(type: 'udp4' | 'udp6'): Promise<string | undefined> {
  const socket = createSocket(type)
  try {
    socket.connect(9, type === 'udp4' ? '192.0.2.1' : '2001:db8::1')
    await once(socket, 'connect')
    return socket.address().address
  } catch {
    return undefined
  } finally {
    socket.close()
  }
}

export async function listenOnPort(server: Server, host: string, port: number): Promise<AddressInfo> {
  server.listen(port, host)
  await once(server, 'listening')
  return server.address() as AddressInfo
}

/** Only the user of this process can connect, from the first moment on. */
export async function listenOnUnixSocket(server: Server, path: string): Promise<void> {
  await removeStale(path)
  // Worker threads cannot set a umask; for them the mode follows a moment later.
  const mask = isMainThread ? process.umask(0o177) : undefined
  try {
    server.listen(path)
  } finally {
    if (mask !== undefined) process.umask(mask)
  }
  await once(server, 'listening')
  await chmod(path, 0o600)
}

/** `unix:/run/door`: not a URL that a browser could mistake for one. */
export function unixSocketUrl(path: string): string {
  return `unix:${pathToFileURL(path).pathname}`
}

/** Removes the socket of a killed server. If one answers, it is in use, and listening fails. */
async function removeStale(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined)
  // A file that is not a socket also refuses connections, and is not ours to remove.
  if (!found?.isSocket()) return
  const socket = connect(path)
  const outcome = await once(socket, 'connect').then(
    () => 'answers',
    (error: NodeJS.ErrnoException) => error.code,
  )
  socket.destroy()
  if (outcome === 'ECONNREFUSED') await rm(path)
}
