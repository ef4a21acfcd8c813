import { text, type Content, type Message, type Session } from '@tapetree/session'
import { recorded, type HostileCases } from './hostile-case.ts'

/** Somewhere in a session where words of others stand. `put` writes these words there; they are one short line. */
export interface RecordedSource {
  put: (session: Session, words: string) => Promise<unknown>
  /** How many cases one such line has. A title is cut where the screen ends. */
  casesPerLine: number
}

let calls = 0

async function callAndResult(
  session: Session,
  call: { name: string; input: Record<string, unknown> },
  result: string | Content[],
): Promise<void> {
  const id = `call_${++calls}`
  await session.appendMessage('assistant', [{ type: 'tool_use', toolUse: { id, ...call } }])
  await session.appendMessage('tool', [{ type: 'tool_result', toolResult: { toolUseId: id, content: result } }])
}

async function append(session: Session, message: Message): Promise<void> {
  await session.append({ type: 'message', message })
}

async function labelled(session: Session, label: string): Promise<void> {
  const target = await session.appendMessage('user', [text('A place with a label')])
  await session.setLabel(target, label)
}

/** What a conversation has. The chat shows all of it, one below the other. */
export const conversationSources: Record<string, RecordedSource> = {
  'model text': { casesPerLine: 2, put: (session, words) => session.appendMessage('assistant', [text(words)]) },
  'code of the model': {
    casesPerLine: 2,
    put: (session, words) => session.appendMessage('assistant', [text(`\`\`\`ts\nconst x = 1 // ${words}\n\`\`\``)]),
  },
  'words of the user': { casesPerLine: 2, put: (session, words) => session.appendMessage('user', [text(words)]) },
  reasoning: {
    casesPerLine: 2,
    put: (session, words) =>
      session.appendMessage('assistant', [{ type: 'reasoning', reasoning: { text: words } }, text('Thought.')]),
  },
  'tool input': {
    casesPerLine: 2,
    put: (session, words) => callAndResult(session, { name: 'bash', input: { command: words } }, 'ok'),
  },
  'tool output': {
    casesPerLine: 2,
    put: (session, words) => callAndResult(session, { name: 'bash', input: { command: 'ls' } }, words),
  },
  'file name': {
    casesPerLine: 1,
    put: (session, words) => callAndResult(session, { name: 'read', input: { path: words } }, 'ok'),
  },
  'content of a file': {
    casesPerLine: 2,
    put: (session, words) =>
      callAndResult(session, { name: 'edit', input: { path: 'a.ts', oldText: 'a', newText: words } }, 'ok'),
  },
  'name of a tool': {
    casesPerLine: 1,
    put: (session, words) => callAndResult(session, { name: words, input: {} }, 'ok'),
  },
  'task of a subagent': {
    casesPerLine: 1,
    put: (session, words) =>
      callAndResult(session, { name: 'task', input: { description: words, prompt: words } }, `Result: ${words}`),
  },
  '`!` output': {
    casesPerLine: 2,
    put: (session, words) =>
      append(session, {
        role: 'bashExecution',
        content: [],
        bashExecution: { command: 'ls', output: words, exitCode: 0 },
      }),
  },
  'error text': {
    casesPerLine: 1,
    put: (session, words) =>
      append(session, { role: 'assistant', content: [text('Failed.')], error: { kind: 'server', message: words } }),
  },
  notice: { casesPerLine: 2, put: (session, words) => session.appendMessage('custom', [text(words)]) },
}

/** What stands beside it: the tree and the queue show it. */
export const labelSource: Record<string, RecordedSource> = { label: { casesPerLine: 1, put: labelled } }
export const queueSource: Record<string, RecordedSource> = {
  'queue message': { casesPerLine: 1, put: (session, words) => session.submit(words, { delivery: 'follow-up' }) },
}

/** Writes so many lines of each source into the session, and says which source has which case. */
export async function putCases(
  session: Session,
  { sources, cases, rounds }: { sources: Record<string, RecordedSource>; cases: HostileCases; rounds: number },
): Promise<Map<number, string>> {
  const sourceOf = new Map<number, string>()
  for (let round = 0; round < rounds; round++) {
    for (const [name, { put, casesPerLine }] of Object.entries(sources)) {
      const taken = cases.take(casesPerLine)
      for (const { number } of taken) sourceOf.set(number, name)
      await put(session, taken.map(recorded).join(' '))
    }
  }
  return sourceOf
}
