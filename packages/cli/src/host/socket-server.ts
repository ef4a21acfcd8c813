import { defaultTenant, startServer, type LiveSessions, type SocketServer } from '@tapetree/server'
import { dirname } from 'node:path'
import { removeStaleSockets } from './runtime-folder.ts'

/** Lets other processes of the same user in, to the sessions of this one. */
export async function serveSocket(sessions: LiveSessions, path: string): Promise<SocketServer> {
  const server = await startServer({ port: null, unixSocket: path, tenants: new Map([[defaultTenant, sessions]]) })
  await removeStaleSockets(dirname(path)).catch(() => undefined) // they are only in the way of who looks there
  return server
}
