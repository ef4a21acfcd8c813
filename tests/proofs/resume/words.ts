/** What the agent's process tells whoever is going to kill it. What arrived was said; what was said last may not arrive. */
export type Word =
  | { type: 'ready' }
  /** A line is durable. */
  | { type: 'line'; seq: number; crc: string }
  | { type: 'delta'; item: string; part: number; off: number; text: string; atMs: number }
  | { type: 'submitted'; message: string }
  | { type: 'nothing-to-resume' }
  | { type: 'needs-person' }
  | { type: 'done'; outcome: string }

export interface Task {
  folder: string
  sessionId: string
  /** Where commands leave their marks. */
  marks: string
  /** Goes on although a plan asks for a person. */
  insist?: boolean
  /** Kills itself at the first word of the model. */
  crashes?: boolean
  /** Kills itself when this answer with commands is durable, the first or the second, before they start. */
  diesAfterAnswer?: number
}

export const waitingMessages = ['first to wait', 'second to wait']

export interface Command {
  /** Of its file of marks. */
  name: string
  id: string
  command: string
  exitCode: number
  output: string
}

/** The commands of the run: two in the first answer, one in the second. Each leaves a mark for every time it was run. */
export function commandsOf(marks: string): [first: Command[], second: Command[]] {
  const first = [
    {
      name: 'a',
      id: 'call-a',
      command: `echo a >> ${marks}/a; for i in $(seq 1 12); do echo "a says $i"; sleep 0.02; done; exit 3`,
      exitCode: 3,
      output: Array.from({ length: 12 }, (_, index) => `a says ${index + 1}`).join('\n'),
    },
    {
      name: 'b',
      id: 'call-b',
      command: `echo b >> ${marks}/b; seq 1 2000; sleep 0.15; echo end`,
      exitCode: 0,
      output: `${Array.from({ length: 2000 }, (_, index) => index + 1).join('\n')}\nend`,
    },
  ]
  // As models do that count the calls of each answer from the beginning.
  const second = [
    {
      name: 'c',
      id: 'call-a',
      command: `echo c >> ${marks}/c; for i in 1 2 3 4 5; do echo "c says $i"; sleep 0.03; done; exit 4`,
      exitCode: 4,
      output: Array.from({ length: 5 }, (_, index) => `c says ${index + 1}`).join('\n'),
    },
  ]
  return [first, second]
}
