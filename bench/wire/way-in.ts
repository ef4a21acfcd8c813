import { subprotocol, type AttachRequest } from '@tapetree/client/protocol'

/** Where a client of a session connects, and what it shows there. */
export function wayIn(sessionId: string, token: string): { path: string; protocols: string[] } {
  return { path: `/api/sessions/${sessionId}/ws`, protocols: [subprotocol, `bearer.${token}`] }
}

/** The first frame of a client. */
export function attachFrame(id: string, after?: AttachRequest['after']): string {
  return JSON.stringify({
    type: 'attach',
    data: { ...(after && { after }), client: { id, name: 'One of many', kind: 'bench' } },
  })
}
