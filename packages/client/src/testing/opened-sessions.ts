import type { Session } from '@tapetree/session'
import { fromDisk, type DiskLine } from '@tapetree/session/format'
import { emptyTranscript, reduceTranscript, type Transcript } from '@tapetree/session/view'
import { afterEach } from 'vitest'
import { RemoteSession, type RemoteSessionOptions } from '../remote-session.ts'
import { ScriptedServer, type Script } from './scripted-server.ts'

const opened: { close(): Promise<void> }[] = []

afterEach(async () => {
  for (const each of opened.splice(0).reverse()) await each.close()
})

export async function serve(script: Script = {}): Promise<ScriptedServer> {
  const server = await ScriptedServer.open(script)
  opened.push(server)
  return server
}

/** Reconnects at once after a cut. */
export async function openSession(
  server: ScriptedServer,
  options: Partial<RemoteSessionOptions> = {},
): Promise<RemoteSession> {
  const session = await RemoteSession.open({
    baseUrl: server.url,
    sessionId: server.session.id,
    window: 500,
    random: () => 0,
    ...options,
  })
  opened.push(session)
  return session
}

/** Resolves at the first change after which the condition holds. */
export async function until(session: RemoteSession, holds: () => boolean): Promise<void> {
  if (holds()) return
  await new Promise<void>((resolve) => {
    const stop = session.subscribe(() => {
      if (!holds()) return
      stop()
      resolve()
    })
  })
}

export async function caughtUp(session: RemoteSession, server: ScriptedServer): Promise<void> {
  await until(session, () => session.status.type === 'attached' && session.transcript.seq === server.session.head.seq)
}

/** The transcript of the whole log. */
export async function foldOf(session: Session): Promise<Transcript> {
  let whole = emptyTranscript()
  for await (const line of session.lines()) {
    if (line.type === 'lost') whole = reduceTranscript(whole, line)
    else {
      const read = fromDisk(JSON.parse(line.text) as DiskLine, line.seq)
      whole = reduceTranscript(whole, { type: 'line', line: read })
    }
  }
  return whole
}

/** The visible parts of a transcript. */
export function shown(transcript: Transcript): Record<string, unknown> {
  const { tree: _, finished: __, path, labels, ...rest } = transcript
  return { ...rest, labels: new Map(labels), leafId: path.leafId, items: [...path.items] }
}

export function wordsIn({ path }: Transcript): string[] {
  return [...path.items].flatMap((item) => {
    if (item.type === 'gap') return [`(${item.gap.type})`]
    if (item.type === 'user')
      return item.content.flatMap((block) => (block.type === 'text' ? [block.text.content] : []))
    return item.type === 'assistant' ? item.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])) : []
  })
}
