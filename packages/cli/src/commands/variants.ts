import { lastCheck, listCopies, prepareChoice, type ListedCopy } from '@tapetree/agent/variants'
import { SnapshotStore } from '@tapetree/agent/workspace'
import type { SessionStore } from '@tapetree/session'
import { flag, type CommandRun } from '../command-line/command.ts'
import { exitCodes } from '../command-line/exit-code.ts'
import { usageFailure } from '../command-line/failure.ts'
import { printJson, write, type Io } from '../command-line/io.ts'
import { findSession } from '../host/find-session.ts'
import { withStore } from '../sessions/with-store.ts'
import { counted } from '../text/amounts.ts'
import { shortIds } from '../text/describe-entry.ts'
import { harmlessLine } from '../text/harmless.ts'
import { outputTable, type Column } from '../text/output-table.ts'
import { chooseVariant, choiceText, removeVariant, variantPlaces } from '../variants/choose-variant.ts'
import { conflictsOption } from '../variants/variants-options.ts'
import { checkText, patchText } from '../variants/variants-table.ts'

const columns: readonly Column[] = [
  { title: 'SESSION' },
  { title: 'VARIANT' },
  { title: 'STATE' },
  { title: 'CHECK' },
  { title: 'FOLDER', flexible: true },
]

export const runVariantsList: CommandRun = async (invocation, io) => {
  const listed = await withStore(io, async (store) => {
    const copies = await listCopies(variantPlaces(io, store))
    return Promise.all(copies.map(async (each) => ({ ...each, ...(await described(each, store)) })))
  })
  if (flag(invocation, 'json')) {
    const copies = listed.map(({ sessionId, root, state, check, copy }) => ({
      session_id: sessionId,
      state,
      check: check ?? null,
      folder: copy?.copyOf ?? null,
      copy: root,
      variants: copy?.variants ?? null,
    }))
    await printJson(io, { copies })
    return exitCodes.ok
  }
  if (listed.length === 0) {
    await write(io.stderr, 'There are no working copies.\n')
    return exitCodes.ok
  }
  const ids = shortIds(listed.map(({ sessionId }) => sessionId))
  const rows = listed.map(({ sessionId, copy, state, checked }) => [
    ids.get(sessionId) ?? sessionId,
    copy?.variants ? `${copy.variants.number} of ${copy.variants.count}` : '',
    state,
    checked,
    harmlessLine(copy?.copyOf ?? ''),
  ])
  await write(io.stdout, outputTable(columns, rows, io.stdout.columns))
  return exitCodes.ok
}

export const runVariantsShow: CommandRun = async (invocation, io) => {
  const [reference = ''] = invocation.positionals
  const patch = await withStore(io, async (store) => {
    const id = await findVariant(reference, { io, store })
    await using session = await store.open(id, { readOnly: true })
    const places = variantPlaces(io, store)
    const { copy, result } = await prepareChoice(session, places)
    const files = await SnapshotStore.open({ folder: copy.copyOf, storesFolder: places.storesFolder })
    return await patchText(files, { from: copy.tree, to: result })
  })
  if (flag(invocation, 'json')) await printJson(io, { patch })
  else await write(io.stdout, patch)
  return exitCodes.ok
}

export const runVariantsChoose: CommandRun = async (invocation, io) => {
  const [reference = ''] = invocation.positionals
  const chosen = await withStore(io, async (store) => {
    const id = await findVariant(reference, { io, store })
    return chooseVariant(id, { io, store, conflicts: conflictsOption(invocation) })
  })
  const { sessionId, folder, changed, merged, kept, skipped, remaining } = chosen
  if (flag(invocation, 'json'))
    await printJson(io, { session_id: sessionId, folder, changed, merged, kept, skipped, remaining })
  else for (const line of choiceText(chosen)) await write(io.stdout, `${line}\n`)
  return exitCodes.ok
}

export const runVariantsRemove: CommandRun = async (invocation, io) => {
  const references = invocation.positionals
  const isAll = flag(invocation, 'all')
  if (isAll === references.length > 0) throw usageFailure('Name the sessions whose copies to remove, or use --all.')
  const removed = await withStore(io, async (store) => {
    const places = variantPlaces(io, store)
    const free = (await listCopies(places)).filter(({ isInUse }) => !isInUse).map(({ sessionId }) => sessionId)
    const ids = isAll ? free : await Promise.all(references.map((each) => findVariant(each, { io, store })))
    for (const id of ids) await removeVariant(id, places)
    return ids
  })
  if (flag(invocation, 'json')) await printJson(io, { removed })
  else await write(io.stderr, `Removed ${counted(removed.length, 'working copy', 'working copies')}.\n`)
  return exitCodes.ok
}

async function described(
  { sessionId, copy, isInUse }: ListedCopy,
  store: SessionStore,
): Promise<{ state: string; checked: string; check?: { exit_code: number } }> {
  if (isInUse) return { state: 'in use', checked: '' }
  if (!copy) return { state: 'empty', checked: '' }
  if (copy.outcome !== undefined) return { state: `${copy.outcome}, not removed`, checked: '' }
  await using session = await store.open(sessionId, { readOnly: true })
  const check = await lastCheck(session)
  const state = session.openRun ? 'interrupted' : session.lastSnapshot === undefined ? 'incomplete' : 'ended'
  return { state, checked: checkText(check), ...(check && { check: { exit_code: check.exitCode } }) }
}

/** By the number of the variant, if there are only the variants of one prompt; otherwise by session. */
async function findVariant(reference: string, { io, store }: { io: Io; store: SessionStore }): Promise<string> {
  if (/^\d{1,2}$/.test(reference)) {
    const listed = (await listCopies(variantPlaces(io, store))).filter(({ copy }) => copy?.variants)
    const found = listed.find(({ copy }) => copy?.variants?.number === Number(reference))
    const isOnePrompt = new Set(listed.map(({ copy }) => copy?.variants?.id)).size === 1
    if (found && isOnePrompt) return found.sessionId
  }
  return (await findSession(store, reference, { cwd: io.cwd })).id
}
