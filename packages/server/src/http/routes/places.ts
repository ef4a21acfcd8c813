import { movedSessionSchema } from '@tapetree/client/protocol'
import { SessionError } from '@tapetree/session'
import { z } from 'zod'
import type { ReachableSessions } from '../../live/reachable-sessions.ts'
import type { Routes } from '../app.ts'
import { readSession, releaseToMove, sessionParameter } from './parameters.ts'
import { json } from '../responses.ts'

const packType = 'application/vnd.tapetree.pack'

export function addPlaces(routes: Routes): void {
  routes.add(
    'drive',
    {
      method: 'post',
      path: '/api/sessions/{id}/archive',
      operationId: 'archiveSession',
      summary: 'Archive a session that is not running',
      request: { params: sessionParameter },
      responses: { 200: json(movedSessionSchema, 'It is archived.') },
    },
    async (context) => {
      const { id } = context.req.valid('param')
      const sessions = context.get('sessions')
      await readSession(sessions, id, (session, live) => {
        if (live?.driver.isBusy)
          throw new SessionError('session-busy', `Session ${session.id} is running. Cancel the run first.`)
      })
      await releaseToMove(sessions, id)
      await sessions.store.archive(id)
      sessions.changed(id)
      return context.json({ id, place: 'archive' as const }, 200)
    },
  )
  routes.add(
    'drive',
    {
      method: 'post',
      path: '/api/sessions/{id}/unarchive',
      operationId: 'unarchiveSession',
      summary: 'Restore a session from the archive',
      request: { params: sessionParameter },
      responses: { 200: json(movedSessionSchema, 'It is restored.') },
    },
    async (context) => context.json(await restore(context.get('sessions'), context.req.valid('param').id), 200),
  )
  routes.add(
    'drive',
    {
      method: 'post',
      path: '/api/sessions/{id}/restore',
      operationId: 'restoreSession',
      summary: 'Restore a session from the trash',
      request: { params: sessionParameter },
      responses: { 200: json(movedSessionSchema, 'It is restored.') },
    },
    async (context) => context.json(await restore(context.get('sessions'), context.req.valid('param').id), 200),
  )
  routes.add(
    'view',
    {
      method: 'get',
      path: '/api/sessions/{id}/export',
      operationId: 'exportSession',
      summary: 'Export a session with its blobs as one file',
      request: { params: sessionParameter },
      responses: {
        200: { description: 'A pack.', content: { [packType]: { schema: z.any() } } },
      },
    },
    async (context) => {
      const { id } = context.req.valid('param')
      const pack = context.get('sessions').store.pack(id)[Symbol.asyncIterator]()
      // Errors such as a missing session are reported before the response starts.
      const first = await pack.next()
      return new Response(streamOf(first, pack), {
        headers: {
          'content-type': packType,
          'content-disposition': `attachment; filename="${id}.pack"`,
          'cache-control': 'no-store',
        },
      })
    },
  )
}

/** A session that is active already stays in place. */
async function restore(sessions: ReachableSessions, id: string): Promise<z.infer<typeof movedSessionSchema>> {
  await sessions.store.restore(id).catch((error: unknown) => {
    const isOpen = error instanceof SessionError && error.code === 'session-owned'
    if (!isOpen) throw error
  })
  sessions.changed(id)
  return { id, place: 'active' }
}

function streamOf(first: IteratorResult<Uint8Array>, rest: AsyncIterator<Uint8Array>): ReadableStream<Uint8Array> {
  let next: IteratorResult<Uint8Array> | undefined = first
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = next ?? (await rest.next())
      next = undefined
      if (done) controller.close()
      else controller.enqueue(value)
    },
    async cancel() {
      await rest.return?.()
    },
  })
}
