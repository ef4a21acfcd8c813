import { sealLine } from '@tapetree/session/format'
import { History, type Attempt, type Logs, type StoredLine } from './history.ts'

/** Changes a history or its logs. Each must be found. */
type Mutant = (history: History, logs: Logs) => [History, Logs]

/** What a broken store would have left. The seal of a line that was changed is right. */
export const mutants: Record<string, Mutant> = {
  'an acknowledged line is lost at the end': (history, logs) => [
    history,
    withLog(logs, history, (lines) => lines.slice(0, lastAcknowledged(history, lines))),
  ],
  'an acknowledged line is lost in the middle': (history, logs) => [
    history,
    withLog(logs, history, (lines) => lines.toSpliced(lastAcknowledged(history, lines) >> 1, 1)),
  ],
  'a log is gone': (history, logs) => [history, new Map([...logs].slice(1))],
  'a line is there twice': (history, logs) => [
    history,
    withLog(logs, history, (lines) => renumbered([...lines, lines[lastAcknowledged(history, lines)] as StoredLine])),
  ],
  'two lines have changed places': (history, logs) => [
    history,
    withLog(logs, history, (lines) => {
      const index = lastAcknowledged(history, lines)
      return renumbered(lines.toSpliced(index - 1, 2, lines[index] as StoredLine, lines[index - 1] as StoredLine))
    }),
  ],
  'a line was not given by anybody': (history, logs) => [
    history,
    withLog(logs, history, (lines) => [
      ...lines,
      renumber(lines.at(-1)?.line.replace(/"id":"[^"]*"/, '"id":"line-nobody-1"') ?? '', lines.length + 1),
    ]),
  ],
  'a byte of a line has changed': (history, logs) => [
    history,
    withLog(logs, history, (lines) => {
      const index = lastAcknowledged(history, lines)
      const { n, line } = lines[index] as StoredLine
      return lines.with(index, { n, line: line.replace('…', '.') })
    }),
  ],
  'a line with an old term is in the log': (history, logs) => [
    withAttempt(history, { isStale: true, outcome: { type: 'abandoned' } }),
    logs,
  ],
  'an append with an old term is acknowledged': (history, logs) => [withAttempt(history, { isStale: true }), logs],
  'a line of a former owner is in the term of the next one': (history, logs) => [
    withAttempt(history, { writer: 'somebody else' }),
    logs,
  ],
  'an append that was refused is in the log': (history, logs) => [
    withAttempt(history, { outcome: { type: 'refused', code: 'storage-failed', message: '', atMs: Infinity } }),
    logs,
  ],
  'an append was never answered': (history, logs) => [withAttempt(history, { outcome: { type: 'open' } }), logs],
  'an append is acknowledged with the seq of another line': (history, logs) => [
    withAttempt(history, { outcome: { type: 'acknowledged', seq: 1, atMs: 0 } }),
    logs,
  ],
  'a session gives up at once': (history, logs) => [
    withAttempt(history, { id: 'new', outcome: { type: 'refused', code: 'storage-failed', message: '', atMs: 0 } }),
    logs,
  ],
  'a session is fenced, although nobody took it over': (history, logs) => [
    withAttempt(history, { id: 'new', outcome: { type: 'refused', code: 'fenced', message: '', atMs: 0 } }),
    logs,
  ],
}

/** An acknowledged append to a session that was not taken over. */
function chosen(history: History): Attempt {
  const attempt = history.attempts
    .values()
    .find(
      ({ session, writer, outcome }) =>
        outcome.type === 'acknowledged' &&
        (history.sessions.get(writer)?.has(session) ?? false) &&
        !history.deposed.has(writer),
    )
  if (!attempt) throw new Error('nothing was acknowledged')
  return attempt
}

function withAttempt(history: History, change: Partial<Attempt>): History {
  const changed = new History()
  const attempt = { ...chosen(history), ...change }
  for (const [id, each] of history.attempts) changed.attempts.set(id, each)
  changed.attempts.set(attempt.id, attempt)
  for (const [writer, sessions] of history.sessions) changed.sessions.set(writer, sessions)
  for (const [writer, process] of history.processes) changed.processes.set(writer, process)
  for (const writer of history.deposed) changed.deposed.add(writer)
  return changed
}

function withLog(logs: Logs, history: History, change: (lines: readonly StoredLine[]) => readonly StoredLine[]): Logs {
  const { session } = chosen(history)
  return new Map([...logs].map(([id, lines]) => [id, id === session ? change(lines) : lines]))
}

/** The index of the last line whose append was acknowledged. */
function lastAcknowledged(history: History, lines: readonly StoredLine[]): number {
  return lines.findLastIndex(({ line }) => {
    const { id } = JSON.parse(line) as { id: string }
    return history.attempts.get(id)?.outcome.type === 'acknowledged'
  })
}

function renumbered(lines: readonly StoredLine[]): StoredLine[] {
  return lines.map(({ line }, index) => renumber(line, index + 1))
}

function renumber(line: string, n: number): StoredLine {
  const { seq: _, crc: _crc, ...rest } = JSON.parse(line) as Record<string, unknown>
  return { n, line: sealLine(rest as Parameters<typeof sealLine>[0], n).text }
}
