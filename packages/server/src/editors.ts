import { ProblemError, type SessionHandle } from '@tapetree/client'
import { newId } from '@tapetree/session'
import { checkRole, mayDo } from './auth/operation-roles.ts'
import type { UsageLimits } from './auth/limits.ts'
import type { Routes } from './http/app.ts'
import type { InnerBindings } from './http/guard.ts'
import { LocalSession } from './local/local-session.ts'
import { RequestProblem, problemOf } from './util/problem-error.ts'
import type { EditorStream } from './ws/editor-stream.ts'
import type { ConnectedEditor } from './ws/ws-door.ts'

/** An editor that is connected to the server, with what its token may do here. */
export interface EditorLink {
  /** JSON-RPC messages. Writing resolves when the connection has taken the message; reading ends when it is closed. */
  stream: EditorStream
  /** Requests to the routes of this server, in this process and with the rights of the editor's token. */
  fetch: typeof globalThis.fetch
  /** The origin of those requests. */
  baseUrl: string
  /** A screen for a session; each command is checked against the role and the limits of the token. */
  openSession: (options: { sessionId: string; clientName: string; window?: number }) => Promise<SessionHandle>
}

/** Speaks the Agent Client Protocol with an editor until its connection is closed. */
export type ServeEditor = (link: EditorLink) => Promise<void>

/** What a connected editor may use: the routes for everything beside sessions, so that no right is checked in two ways. */
export function linkOf(
  { stream, admitted, peer, requestId, sessions, over }: ConnectedEditor,
  { routes, limits }: { routes: Routes; limits: UsageLimits },
): EditorLink {
  const { caller } = admitted
  const baseUrl = `${peer.scheme}://${peer.host ?? 'localhost'}`
  const sender = { tokenId: caller.tokenId, mayDrive: mayDo(caller.role, 'drive') }
  return {
    stream,
    baseUrl,
    fetch: async (input, init) => {
      if (over.aborted) throw new ProblemError(problemOf(ended()))
      const bindings: InnerBindings = { admitted, peer, requestId }
      return routes.app.fetch(new Request(input, init), bindings)
    },
    openSession: async ({ sessionId, clientName, window }) => {
      if (over.aborted) throw new ProblemError(problemOf(ended()))
      const id = `c-${newId()}`
      sessions.clientIds.claim(id, caller.tokenId)
      return LocalSession.open({
        sessions,
        sessionId,
        client: { id, kind: 'editor', name: clientName },
        ...(window !== undefined && { window }),
        authorize: ({ op, args }, live) => {
          if (over.aborted) throw ended()
          checkRole(caller, { op, args }, live)
          limits.takeRequest(caller)
          return { sender, checkLimits: () => limits.of(caller).checkCommand(op) }
        },
      }).catch((error: unknown) => {
        throw new ProblemError(problemOf(error), { cause: error })
      })
    },
  }
}

function ended(): RequestProblem {
  return new RequestProblem(401, 'not-signed-in', 'The connection of the editor is over.')
}
