import type { Evidence, StoredLine } from './judge.ts'

/** Changes the evidence. Each must be found. */
type Mutant = (evidence: Evidence) => Evidence

/** What a broken service would have left. */
export const mutants: Record<string, Mutant> = {
  'an acknowledged message is lost': (evidence) =>
    withLog(evidence, (lines) => {
      const index = lines.findLastIndex(isPrompt)
      return renumbered(lines.toSpliced(index, 1))
    }),
  'a message is there twice': (evidence) =>
    withLog(evidence, (lines) => renumbered([...lines, lines.findLast(isPrompt) as StoredLine])),
  'a log ends too early': (evidence) => withLog(evidence, (lines) => lines.slice(0, -1)),
  'a former owner wrote in the term of the next one': (evidence) =>
    withLog(evidence, (lines) => [...lines.slice(0, -1), { ...(lines.at(-1) as StoredLine), writer: 'nobody-1' }]),
  'a line of an old term comes after one of a new term': (evidence) =>
    withLog(evidence, (lines) => [
      ...lines.map((line, index) => (index > 0 && index < lines.length - 1 ? { ...line, term: line.term + 1 } : line)),
    ]),
  'a call ran twice': (evidence) => ({ ...evidence, ledger: [...evidence.ledger, evidence.ledger[0] as string] }),
  'a call ran that the log does not have': (evidence) => ({ ...evidence, ledger: [...evidence.ledger, 'nobody-1'] }),
  'a call has no result': (evidence) =>
    withLog(evidence, (lines) => {
      const index = lines.findIndex(({ line }) => line.includes('"type":"tool_result"'))
      return renumbered(lines.toSpliced(index, 1))
    }),
  'a client got a line that is not in the log': (evidence) => {
    const [session, seen] = [...evidence.seen].find(([, lines]) => lines.size > 0) as [string, Map<number, string>]
    const [seq, text] = [...seen][0] as [number, string]
    const changed = new Map(seen).set(seq, text.replace('"seq"', '"sequence"'))
    return { ...evidence, seen: new Map(evidence.seen).set(session, changed) }
  },
}

function isPrompt({ line }: StoredLine): boolean {
  return line.includes('"role":"user"') && line.includes('"type":"message"')
}

/** Of a session that has called a tool. */
function withLog(evidence: Evidence, change: (lines: readonly StoredLine[]) => readonly StoredLine[]): Evidence {
  const [session, lines] = [...evidence.logs].find(([, each]) =>
    each.some(({ line }) => line.includes('"type":"tool_result"')),
  ) as [string, readonly StoredLine[]]
  return { ...evidence, seen: new Map(), logs: new Map(evidence.logs).set(session, change(lines)) }
}

function renumbered(lines: readonly StoredLine[]): StoredLine[] {
  return lines.map((stored, index) => ({
    ...stored,
    n: index + 1,
    line: stored.line.replace(/"seq":\d+/, `"seq":${index + 1}`),
  }))
}
