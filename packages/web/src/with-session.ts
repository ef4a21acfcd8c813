import { RemoteSession } from '@tapetree/client'
import { baseUrl } from './server.ts'

/** Connects to a session for one command, for screens that do not follow it. */
export async function withSession<T>(sessionId: string, work: (session: RemoteSession) => Promise<T>): Promise<T> {
  const session = await RemoteSession.open({ baseUrl, sessionId, client: { name: 'web', kind: 'web' } })
  try {
    return await work(session)
  } finally {
    await session.close()
  }
}
