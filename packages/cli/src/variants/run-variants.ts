import { listCopies, type VariantPlaces } from '@tapetree/agent/variants'
import type { SessionStore } from '@tapetree/session'
import { exitCodes, type ExitCode } from '../command-line/exit-code.ts'
import { Failure } from '../command-line/failure.ts'
import { askLine, isInteractive, printJson, write, type Io } from '../command-line/io.ts'
import { openStore } from '../host/open-store.ts'
import { placesOf } from '../host/places.ts'
import { counted } from '../text/amounts.ts'
import { harmlessLine } from '../text/harmless.ts'
import { chooseVariant, choiceText, type ChosenVariant } from './choose-variant.ts'
import { prepareVariants } from './prepare-variants.ts'
import { VariantsWork, type StopReason } from './variants-work.ts'
import type { VariantsOptions } from './variants-options.ts'
import { bestVariant, variantJson, type VariantState } from './variants-table.ts'

/** `tapetree run --variants`: from the options to the exit code. */
export async function runVariants(options: VariantsOptions, io: Io): Promise<ExitCode> {
  const store = await openStore(placesOf(io))
  try {
    const prepared = await prepareVariants(options, { io, store })
    await tellOfLeftovers(prepared.places, io)
    await using work = await VariantsWork.open(options, { io, store, prepared })
    await work.run()
    const { stopped } = work
    const chosen = stopped ? undefined : await choose(options, { io, store, work })
    if (stopped) await work.removeUnchanged()
    const variants = work.variants.map(variantJson)
    const cost = work.cost
    if (options.run.format === 'json')
      await printJson(io, { variants_id: work.id, folder: prepared.folder, cost, variants, chosen: chosenJson(chosen) })
    const failure = stopped ? stoppedFailure(stopped, work) : outcomeFailure(options, { work, chosen })
    // After a signal only the exit code is reported.
    if (stopped === 'interrupted')
      await write(io.stderr, `! ${failure?.why} To see what is left: tapetree variants list\n`)
    if (failure) throw failure
    return exitCodes.ok
  } finally {
    await store.close()
  }
}

async function tellOfLeftovers(places: VariantPlaces, { stderr }: Io): Promise<void> {
  const left = (await listCopies(places)).filter(({ isInUse }) => !isInUse)
  if (left.length === 0) return
  await write(
    stderr,
    `! ${counted(left.length, 'working copy', 'working copies')} of earlier variants ` +
      `${left.length === 1 ? 'is' : 'are'} left. To see them: tapetree variants list\n`,
  )
}

/** Chooses as the command line says, or asks. Undefined if none was chosen. */
async function choose(
  options: VariantsOptions,
  { io, store, work }: { io: Io; store: SessionStore; work: VariantsWork },
): Promise<ChosenVariant | undefined> {
  const { choose: typed, check, conflicts } = options
  const candidates = work.variants.filter(({ diff }) => diff !== undefined)
  if (typed === 'none') {
    await work.removeAll()
    return undefined
  }
  const isAsked = typed === undefined && options.run.format === 'text' && isInteractive(io)
  const best = bestVariant(work.variants, check !== undefined)
  const number = isAsked ? await ask(candidates, { io, work, best }) : typed === 'best' ? best?.number : typed
  if (number === 'none') {
    await work.removeAll()
    await write(io.stderr, 'The copies were removed. The sessions remain.\n')
    return undefined
  }
  const variant = work.variants.find((each) => each.number === number)
  if (!variant) return undefined
  if (variant.sessionId === undefined || !variant.diff)
    throw new Failure(exitCodes.runFailed, `Variant ${variant.number} has no result to choose.`, {
      type: 'no-result',
      next: ['tapetree variants list'],
    })
  await work.release()
  const chosen = await chooseVariant(variant.sessionId, { io, store, conflicts })
  for (const each of work.variants) if (!chosen.remaining.includes(each.sessionId ?? '')) delete each.folder
  if (options.run.format === 'text') for (const line of choiceText(chosen)) await write(io.stderr, `${line}\n`)
  return chosen
}

/** A number, `none`, or undefined to decide later. */
async function ask(
  candidates: readonly VariantState[],
  { io, work, best }: { io: Io; work: VariantsWork; best: VariantState | undefined },
): Promise<number | 'none' | undefined> {
  if (candidates.length === 0) return undefined
  const numbers = candidates.map(({ number }) => number).join(', ')
  const hint = best ? ` Best: ${best.number}.` : ''
  for (;;) {
    const typed = await askLine(
      io,
      `Choose a variant (${numbers}), show a diff (d1), remove all (none), or decide later (Enter).${hint} `,
    ).catch(async (error: unknown) => {
      await write(io.stderr, '\n! The copies are kept. To see them: tapetree variants list\n')
      throw error
    })
    if (typed === '') {
      await write(io.stderr, 'The copies are kept. To choose one later: tapetree variants choose <variant>\n')
      return undefined
    }
    if (/^none$/i.test(typed)) return 'none'
    const [, shows, number] = /^(d\s*)?(\d+)$/i.exec(typed) ?? []
    const variant = candidates.find((each) => String(each.number) === number)
    if (!variant) await write(io.stderr, `There is no variant ${harmlessLine(typed)}.\n`)
    else if (shows === undefined) return variant.number
    else await write(io.stdout, await work.patch(variant))
  }
}

function chosenJson(chosen: ChosenVariant | undefined): object | null {
  if (!chosen) return null
  const { sessionId, folder, changed, merged, kept, skipped, remaining } = chosen
  return { session_id: sessionId, folder, changed, merged, kept, skipped, remaining }
}

const decideLater = ['tapetree variants list', 'tapetree variants choose <session>', 'tapetree variants remove --all']

function stoppedFailure(reason: StopReason, { variants }: VariantsWork): Failure {
  const kept = variants.filter(({ folder }) => folder !== undefined).length
  const why =
    kept === 0
      ? 'No copy is left.'
      : `${counted(kept, 'copy', 'copies')} with changes ${kept === 1 ? 'is' : 'are'} kept.`
  const next = kept === 0 ? [] : decideLater
  if (reason === 'cost')
    return new Failure(exitCodes.limitReached, 'The variants were stopped, because together they reached --max-cost.', {
      type: 'limit:cost',
      why,
      next,
    })
  return new Failure(exitCodes.interrupted, 'Interrupted.', { type: 'interrupted', why, next })
}

/** Undefined if a variant was chosen, or if one could be. */
function outcomeFailure(
  { choose: typed, check }: VariantsOptions,
  { work, chosen }: { work: VariantsWork; chosen: ChosenVariant | undefined },
): Failure | undefined {
  const hasCompleted = work.variants.some(({ outcome }) => outcome === 'completed')
  if (chosen || (typed === 'none' && hasCompleted)) return undefined
  if (bestVariant(work.variants, check !== undefined)) return undefined
  const message = !hasCompleted
    ? 'No variant completed.'
    : check === undefined
      ? 'No variant changed a file.'
      : 'No variant changed a file and passed the check.'
  return new Failure(exitCodes.runFailed, message, { type: 'no-variant', next: decideLater })
}
