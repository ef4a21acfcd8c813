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
}

export const waitingMessages = ['first to wait', 'second to wait']

/** The two commands of the run. Each leaves a mark for every time it was run. */
export function commandsOf(marks: string): { id: string; command: string; exitCode: number; output: string }[] {
  return [
    {
      id: 'call-a',
      command: `echo a >> ${marks}/a; for i in $(seq 1 12); do echo "a says $i"; sleep 0.02; done; exit 3`,
      exitCode: 3,
      output: Array.from({ length: 12 }, (_, index) => `a says ${index + 1}`).join('\n'),
    },
    {
      id: 'call-b',
      command: `echo b >> ${marks}/b; seq 1 2000; sleep 0.15; echo end`,
      exitCode: 0,
      output: `${Array.from({ length: 2000 }, (_, index) => index + 1).join('\n')}\nend`,
    },
  ]
}
