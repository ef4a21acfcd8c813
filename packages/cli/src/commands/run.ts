import type { CommandRun } from '../command-line/command.ts'
import { checkSetup } from '../print/check-setup.ts'
import { variantsOptionsOf } from '../variants/variants-options.ts'
import { runOptionsOf } from '../print/run-options.ts'

/** `tapetree run`. Checks what can fail before it creates a session and before it loads the rest. */
export const runPrompt: CommandRun = async (invocation, io) => {
  const variants = variantsOptionsOf(invocation)
  if (variants) return (await import('../variants/run-variants.ts')).runVariants(variants, io)
  const options = runOptionsOf(invocation)
  const { flags, model, toolNames } = options
  const setup = options.session === undefined && (await checkSetup({ io, flags, model, toolNames, isNew: true }))
  const { printRun } = await import('../print/print-run.ts')
  return printRun(options, { io, setup: setup || undefined })
}
