import type { BashExecution } from '@tapetree/session'

/** A command that the user ran, as the user would tell it. */
export function tellCommand({ command, output, exitCode, cancelled, truncated }: BashExecution): string {
  const ending = cancelled
    ? 'It was cancelled.'
    : exitCode === undefined
      ? 'Its exit code is not known.'
      : `Exit code ${exitCode}.`
  const shown = output.trim() === '' ? ['It printed nothing.'] : ['Output:', '```', output, '```']
  return [
    'I ran this command:',
    '```',
    command,
    '```',
    ...shown,
    ending,
    ...(truncated ? ['The output is not shown whole.'] : []),
  ].join('\n')
}

export function tellCompaction(summary: string): string {
  return `The conversation up to here was replaced by this summary of it:\n\n<summary>\n${summary}\n</summary>`
}

export function tellBranch(summary: string): string {
  return `The conversation went another way for a while and then came back to this point. A summary of that way:\n\n<summary>\n${summary}\n</summary>`
}
