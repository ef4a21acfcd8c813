import { once } from 'node:events'
import { chmod, lstat, rm } from 'node:fs/promises'
import { connect, type AddressInfo, type Server } from 'node:net'
import { pathToFileURL } from 'node:url'
import { isMainThread } from 'node:worker_threads'

/** Why a server must not listen at this address; undefined if it may. */
export function bindProblem(bind: { host: string; hasTls: boolean; allowInsecure: boolean }): string | undefined {
  const { host, hasTls, allowInsecure } = bind
  if (isLoopback(host) || hasTls || allowInsecure) return undefined
  return (
    `${host} is reachable from other machines, and without TLS tokens can be intercepted:` +
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
