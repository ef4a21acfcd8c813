/** The two tasks that the parent gives away: in each a command is run that leaves a mark for every time it was. */
export function tasksOf(marks: string): SubagentTask[] {
  return ['a', 'b'].map((name) => ({
    callId: `task-${name}`,
    prompt: `do ${name}`,
    command: `echo ${name} >> ${marks}/${name}; for i in $(seq 1 10); do echo "${name} says $i"; sleep 0.03; done`,
    output: Array.from({ length: 10 }, (_, index) => `${name} says ${index + 1}`).join('\n'),
    mark: `${marks}/${name}`,
    answer: `${name} is done`,
  }))
}

export interface SubagentTask {
  callId: string
  prompt: string
  command: string
  output: string
  /** A file with a line for each time that the command was run. */
  mark: string
  answer: string
}

export const parentAnswer = 'Both have come back.'
