import { once } from 'node:events'
import { chmod, lstat, rm } from 'node:fs/promises'
import { connect, type AddressInfo, type Server } from 'node:net'
import { pathToFileURL } from 'node:url'
import { isMainThread } from 'node:worker_threads'

/** Why a server must not listen there; undefined where it may. */
export function bindProblem(bind: { host: string; hasTls: boolean; allowInsecure: boolean }): string | undefined {
  const { host, hasTls, allowInsecure } = bind
  if (isLoopback(host) || hasTls || allowInsecure) return undefined
  return (
    `${host} can be reached from other machines, and without TLS everyone on the way reads the tokens: ` +
    'give a certificate, listen on 127.0.0.1, or say allowInsecure where a proxy before it does TLS.'
  )
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host)
}

/** All addresses of a machine: a place to listen at, but no name to be called by. */
export function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || host === '::' || host === ''
}

export async function listenOnPort(server: Server, host: string, port: number): Promise<AddressInfo> {
  server.listen(port, host)
  await once(server, 'listening')
  return server.address() as AddressInfo
}

/** Only the user who runs us can connect, from the first moment on. */
export async function listenOnUnixSocket(server: Server, path: string): Promise<void> {
  await removeStale(path)
  // Threads have no mask of their own to set; for them the mode comes a moment later.
  const mask = isMainThread ? process.umask(0o177) : undefined
  try {
    server.listen(path)
  } finally {
    if (mask !== undefined) process.umask(mask)
  }
  await once(server, 'listening')
  await chmod(path, 0o600)
}

/** `unix:/run/door`: no URL that a browser knows, so nobody takes it for one. */
export function unixSocketUrl(path: string): string {
  return `unix:${pathToFileURL(path).pathname}`
}

/** What a server that was killed has left behind. One that answers is in use, and listening fails. */
async function removeStale(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined)
  // A file that is no socket refuses connections as well, and is somebody's.
  if (!found?.isSocket()) return
  const socket = connect(path)
  const outcome = await once(socket, 'connect').then(
    () => 'answers',
    (error: NodeJS.ErrnoException) => error.code,
  )
  socket.destroy()
  if (outcome === 'ECONNREFUSED') await rm(path)
}
