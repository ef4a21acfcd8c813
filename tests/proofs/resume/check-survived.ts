import { readFile } from 'node:fs/promises'
import type { Session } from '@tapetree/session'
import type { Entry } from '@tapetree/session/format'
import type { Delta } from './killable-agent.ts'
import { commandsOf } from './words.ts'

/** What was promised before the kills, gathered over all processes of one session. */
export interface Promised {
  lines: Map<number, string>
  submitted: string[]
  /** What was being streamed at each kill. */
  cuts: { deltas: Delta[]; killedAtMs: number }[]
}

export interface Survived {
  problems: string[]
  /** The oldest text that was shown and lost, at the moment of a kill. */
  lostTextMs: number
}

/** Holds a session that has come to its end against what was promised on the way. */
export async function checkSurvived(session: Session, promised: Promised, marks: string): Promise<Survived> {
  const { stored, attempts } = await readLog(session)
  const problems: string[] = []
  for (const [seq, crc] of promised.lines) {
    if (stored.get(seq) !== crc) problems.push(`line ${seq} was durable and is ${stored.has(seq) ? 'another' : 'gone'}`)
  }
  if (session.openRun) problems.push('the run has no end')
  const path = await session.getContextPath()
  const context = await session.getContext()
  problems.push(...context.repairs, ...(await checkCommands(path, marks)), ...checkMessages(path, promised))
  const texts = new Map([...attempts, ...answersOn(path)])
  return { problems, lostTextMs: Math.max(0, ...promised.cuts.map((cut) => lostTextMs(cut, texts))) }
}

/** Every line by its checksum, and what the attempts had said, part by part. */
export async function readLog(
  session: Session,
): Promise<{ stored: Map<number, string>; attempts: Map<string, string[]> }> {
  const stored = new Map<number, string>()
  const attempts = new Map<string, string[]>()
  for await (const line of session.lines()) {
    if (line.type !== 'line') continue
    const parsed = JSON.parse(line.text) as { crc: string; attempt?: { item: string; content: unknown[] } }
    stored.set(line.seq, parsed.crc)
    if (parsed.attempt) attempts.set(parsed.attempt.item, parsed.attempt.content.map(textOf))
  }
  return { stored, attempts }
}

function answersOn(path: readonly Entry[]): [string, string[]][] {
  return path.flatMap((entry): [string, string[]][] =>
    entry.type === 'message' ? [[entry.id, entry.message.content.map(textOf)]] : [],
  )
}

/** The real outcome of all commands, and a mark for each that it ran once. */
async function checkCommands(path: readonly Entry[], marks: string): Promise<string[]> {
  const problems: string[] = []
  const results = path
    .flatMap((entry) => (entry.type === 'message' ? entry.message.content : []))
    .flatMap((block) => (block.type === 'tool_result' ? [block.toolResult] : []))
  for (const [index, { name, id, output, exitCode }] of commandsOf(marks).flat().entries()) {
    const { toolUseId, content } = results[index] ?? {}
    const said = typeof content === 'string' && toolUseId === id ? content : 'nothing'
    if (!said.startsWith(output))
      problems.push(`${name} should have said all of its output and said: ${said.slice(0, 300)}`)
    if (exitCode !== 0 && !said.includes(`Exit code ${exitCode}`))
      problems.push(`${name} lacks its exit code: ${said.slice(-200)}`)
    const runs = await readFile(`${marks}/${name}`, 'utf8').catch(() => '')
    if (runs.length !== 2) problems.push(`${name} ran ${runs.length / 2} times`)
  }
  return problems
}

function checkMessages(path: readonly Entry[], { submitted }: Promised): string[] {
  const delivered = path.flatMap((entry) =>
    entry.type === 'message' && entry.message.submissionId !== undefined ? entry.message.content.map(textOf) : [],
  )
  const isInOrder =
    delivered.join() === [...new Set(delivered)].join() && submitted.every((each, index) => delivered[index] === each)
  return isInOrder ? [] : [`waiting were ${submitted.join()}, delivered were ${delivered.join()}`]
}

/** How old the oldest text was that had been shown when the process died and is nowhere now. */
function lostTextMs({ deltas, killedAtMs }: Promised['cuts'][number], texts: ReadonlyMap<string, string[]>): number {
  const lost = deltas.filter(({ item, part, off, text }) => (texts.get(item)?.[part]?.length ?? 0) < off + text.length)
  const first = lost[0]
  return first ? killedAtMs - first.atMs : 0
}

/** Of a block as it stands on disk or in the API. A call is told by its whole input. */
function textOf(block: unknown): string {
  const { text, tool_use, toolUse } = block as { text?: { content: string }; tool_use?: object; toolUse?: object }
  return text?.content ?? (tool_use || toolUse ? JSON.stringify(block) : '')
}
