import { settledWithin } from '@tapetree/session/util/deadline'
import type { Server } from 'node:http'

/** A server is down within 5 s, whatever hangs; the rest of them is for cutting whoever did not go. */
export const defaultGraceMs = 4500

export interface Shutdown {
  graceMs: number
  servers: readonly Server[]
  /** Says goodbye to all, ends or keeps what runs, and is done when all of it is on the disk. */
  finish: () => Promise<void>
}

/** No new callers, goodbye to those that are there, and in the end nobody waits for who does not go. */
export async function shutDown({ servers, finish, graceMs }: Shutdown): Promise<'in time' | 'cut'> {
  const closed = Promise.all(
    servers.map(
      (server) =>
        new Promise<void>((resolve) => {
          server.close(() => resolve())
          server.closeIdleConnections()
        }),
    ),
  )
  const orderly = finish().then(async () => {
    for (const server of servers) server.closeIdleConnections()
    await closed
  })
  try {
    if ((await settledWithin(orderly, { ms: graceMs })) === 'late') return 'cut'
    await orderly
    return 'in time'
  } finally {
    for (const server of servers) server.closeAllConnections()
  }
}
