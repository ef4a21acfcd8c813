import { CopyProblem, planCopies, type CopyPlan, type VariantPlaces } from '@tapetree/agent/variants'
import { SnapshotsOff, SnapshotStore, type Snapshot } from '@tapetree/agent/workspace'
import type { ModelReference, SessionStore } from '@tapetree/session'
import { exitCodes } from '../command-line/exit-code.ts'
import { Failure, usageFailure } from '../command-line/failure.ts'
import type { Io } from '../command-line/io.ts'
import { checkSetup } from '../print/check-setup.ts'
import type { ComposedPrompt } from '../print/compose-prompt.ts'
import { meantSession, promptFrom } from '../print/print-run.ts'
import { variantPlaces } from './choose-variant.ts'
import type { VariantsOptions } from './variants-options.ts'

export interface PreparedVariants {
  folder: string
  prompt: ComposedPrompt | undefined
  models: (ModelReference | undefined)[]
  notices: string[]
  places: VariantPlaces
  /** The session to fork, and the entry. */
  source: { id: string; leafId: string | null } | undefined
  files: SnapshotStore
  snapshot: Snapshot
  plan: CopyPlan
}

/** Checks what can fail before anything is created. */
export async function prepareVariants(
  { run, models: typed, count }: VariantsOptions,
  { io, store }: { io: Io; store: SessionStore },
): Promise<PreparedVariants> {
  const places = variantPlaces(io, store)
  const meant = run.session === undefined ? undefined : await meantSession(store, run.session, io.cwd)
  const folder = meant?.cwd ?? io.cwd
  const { flags, toolNames } = run
  const models: PreparedVariants['models'] = []
  const notices = new Set<string>()
  for (const model of typed.length === 0 ? [undefined] : typed) {
    const setup = await checkSetup({ io: { ...io, cwd: folder }, flags, model, toolNames, isNew: !meant })
    models.push(setup.model)
    for (const notice of setup.notices) notices.add(notice)
  }
  const prompt = await promptFrom(run, io)
  const source = meant && (await sourceOf(store, meant.id))
  const { storesFolder, copiesFolder } = places
  try {
    const files = await SnapshotStore.open({ folder, storesFolder })
    const snapshot = await files.take()
    const plan = await planCopies(files, { tree: snapshot.tree, count, folder: copiesFolder })
    return { folder, prompt, models, notices: [...notices], places, source, files, snapshot, plan }
  } catch (error) {
    if (!(error instanceof SnapshotsOff || error instanceof CopyProblem)) throw error
    throw new Failure(exitCodes.runFailed, `${error.message} Variants work in copies of the folder.`, {
      type: 'no-working-copies',
      next: ['tapetree run "…"'],
      cause: error,
    })
  }
}

async function sourceOf(store: SessionStore, id: string): Promise<PreparedVariants['source']> {
  await using session = await store.open(id, { readOnly: true })
  if (session.workingCopy && session.workingCopy.outcome === undefined)
    throw usageFailure(`Session ${id} is a variant that works in a copy. Choose or remove it first.`, [
      `tapetree variants choose ${id}`,
      `tapetree variants remove ${id}`,
    ])
  return { id, leafId: session.leafId }
}
