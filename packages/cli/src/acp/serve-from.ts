import { RemoteSession, type ServerAddress } from '@tapetree/client'
import type { EditorLink } from '@tapetree/server/types'
import type { Invocation } from '../command-line/command.ts'
import { exitCodes, type ExitCode } from '../command-line/exit-code.ts'
import { usageFailure } from '../command-line/failure.ts'
import type { Io } from '../command-line/io.ts'
import { KnownServers } from '../host/known-servers.ts'
import { addressOfServer, parseServerLink, requireSafe } from '../host/pair.ts'
import { placesOf } from '../host/places.ts'
import { serverFor } from '../host/server-for.ts'
import { harmlessLine } from '../text/harmless.ts'
import type { EditorSessions } from './editor-sessions.ts'
import type { Editor } from './editor.ts'
import { serveAcp, stdioOf } from './serve-acp.ts'
import type { ServedSessionsOptions } from './served-sessions.ts'

const serverLogin = 'Run `tapetree login <provider>` on the machine of the server, then start a session again.'

/** `tapetree acp --connect`: an editor on this machine, with the sessions of a server. */
export async function serveFrom(
  where: string,
  { invocation, io, allowInsecure }: { invocation: Invocation; io: Io; allowInsecure: boolean },
): Promise<ExitCode> {
  const link = parseServerLink(where)
  if (!link) {
    throw usageFailure(`${JSON.stringify(harmlessLine(where))} is not the address of a server.`, [
      'tapetree acp --connect https://tape.example:8787',
      'tapetree attach --list',
    ])
  }
  const own = ['model', 'permission-mode', 'sandbox', 'thinking'].find((name) => invocation.values[name] !== undefined)
  if (own !== undefined)
    throw usageFailure(
      `--${own} cannot be used with --connect. Choose it in the editor, or in the settings of the server.`,
    )
  requireSafe(link, { allowInsecure })
  const server = await serverFor({ link, servers: new KnownServers(placesOf(io)), invocation, io })
  const address = addressOfServer(server)
  await serveAcp({
    stream: stdioOf(io),
    signal: io.signal,
    takesServers: false,
    login: serverLogin,
    open: (editor, editorName) =>
      servedSessions(editor, editorName, {
        ...address,
        openSession: async ({ sessionId, clientName, window }) => {
          const client = { kind: 'editor', name: clientName }
          const handle = await RemoteSession.open({ ...address, sessionId, window, client })
          await handle.ready
          return handle
        },
      }),
  })
  return exitCodes.ok
}

/** An editor that is connected to `/acp` of a server of this process. */
export async function serveEditor({ stream, ...link }: EditorLink): Promise<void> {
  await serveAcp({
    // The SDK checks each message.
    stream: stream as Parameters<typeof serveAcp>[0]['stream'],
    takesServers: false,
    login: serverLogin,
    open: (editor, editorName) => servedSessions(editor, editorName, link),
  })
}

async function servedSessions(
  editor: Editor,
  editorName: string,
  { openSession, ...address }: ServerAddress & Pick<ServedSessionsOptions, 'openSession'>,
): Promise<EditorSessions> {
  const { ServedSessions } = await import('./served-sessions.ts')
  return new ServedSessions({ editor, editorName, address, openSession })
}
