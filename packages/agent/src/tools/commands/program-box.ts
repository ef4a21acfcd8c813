import type { CommandBox } from './command.ts'

/** A program that the agent starts by itself, not for a call of the model. */
export type OwnProgram = { cwd: string } & (
  | { type: 'hook'; command: string }
  | { type: 'server'; name: string }
  /** It only reads, and has no network. */
  | { type: 'language-server'; name: string }
  /** A foreign agent: it works in the folder, and reaches its provider. */
  | {
      type: 'agent'
      name: string
      /** Where it keeps its settings and its login, absolute. It may read and write them. */
      folders: readonly string[]
    }
  /** It only reads. */
  | { type: 'git' }
)

export interface ProgramBox extends CommandBox {
  /** After the program: moves new control files out of the working folder, and returns a sentence about them. */
  settle(): Promise<string | undefined>
}

/** Makes the sandbox of a program. Undefined: it runs outside. If it throws, the program does not run. */
export type BoxProgram = (program: OwnProgram) => Promise<ProgramBox | undefined>

export interface BoxedProgram {
  file: string
  args: readonly string[]
  env: Readonly<Record<string, string>>
}

/** What to start for a program in a sandbox. */
export function inBox({ file, args, env }: BoxedProgram, box: CommandBox | undefined): BoxedProgram {
  const [first, ...rest] = box?.argv ?? []
  if (!box || first === undefined) return { file, args, env }
  return { file: first, args: [...rest, file, ...args], env: { ...env, ...box.env } }
}
