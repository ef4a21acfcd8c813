import { defaultTenant, startServer, type LiveSessions, type SocketServer } from '@tapetree/server'
import { dirname } from 'node:path'
import { removeStaleSockets } from './runtime-folder.ts'

/** Lets other processes of the same user open the sessions of this process. */
export async function serveSocket(sessions: LiveSessions, path: string): Promise<SocketServer> {
  const server = await startServer({ port: null, unixSocket: path, tenants: new Map([[defaultTenant, sessions]]) })
  await removeStaleSockets(dirname(path)).catch(() => undefined) // stale sockets only clutter the folder
  return server
}
