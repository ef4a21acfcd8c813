import type { CommandSpec } from './command.ts'
import { bashCompletion } from './completion-bash.ts'
import { fishCompletion } from './completion-fish.ts'
import { completionPoints } from './completion-points.ts'
import { zshCompletion } from './completion-zsh.ts'

export const shells = ['bash', 'zsh', 'fish'] as const

/** A shell script generated from the command table. */
export function completionScript(shell: (typeof shells)[number], commands: readonly CommandSpec[]): string {
  const points = completionPoints(commands)
  switch (shell) {
    case 'bash':
      return bashCompletion(points)
    case 'zsh':
      return zshCompletion(points)
    case 'fish':
      return fishCompletion(points)
    default:
      return shell satisfies never
  }
}
