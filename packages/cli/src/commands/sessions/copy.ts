import { SessionError, SessionStore, type Place } from '@tapetree/session'
import type { LogStore } from '@tapetree/session/log-store'
import { copySession, sessionIdsIn, type CopiedSession, type CopyTarget } from '@tapetree/session/stores/copy'
import { flag, textOption, type Invocation } from '../../command-line/command.ts'
import { exitCodes, type ExitCode } from '../../command-line/exit-code.ts'
import { failureOf } from '../../command-line/failure-of.ts'
import { errorMembers, Failure, usageFailure } from '../../command-line/failure.ts'
import { printJson, write, type Io } from '../../command-line/io.ts'
import { findSession } from '../../host/find-session.ts'
import { placesOf } from '../../host/places.ts'
import { openCopyTarget, openLogStore, storeAddress, type StoreAddress } from '../../host/store-address.ts'
import { Progress } from '../../sessions/progress.ts'
import { counted } from '../../text/amounts.ts'
import { harmlessLine } from '../../text/harmless.ts'
import { snakeNames } from '../../text/json-text.ts'

interface Refused {
  id: string
  failure: Failure
}

/** Copies sessions from one store to another. A session that cannot be copied does not stop the others. */
export async function runSessionsCopy(invocation: Invocation, io: Io): Promise<ExitCode> {
  const references = invocation.positionals
  if (references.length > 0 === flag(invocation, 'all')) {
    throw usageFailure('Name sessions, or use --all for every session.', [
      'tapetree sessions copy last --to <store>',
      'tapetree sessions copy --all --to <store>',
    ])
  }
  const [fromAddress, toAddress] = await addressesOf(invocation, io)
  using progress = new Progress(io.stderr, 'Reading the sessions')
  const from = await openLogStore(fromAddress)
  const to = await openCopyTarget(toAddress)
  try {
    const ids = flag(invocation, 'all') ? await sessionIdsIn(from) : await idsOf(references, from, io)
    const copied: (CopiedSession & { id: string })[] = []
    const refused: Refused[] = []
    for (const [index, id] of ids.entries()) {
      io.signal.throwIfAborted()
      progress.words = `Copying session ${index + 1} of ${ids.length}`
      const result = await copyOne({ from, to, id, dryRun: flag(invocation, 'dry-run') })
      if (result instanceof Failure) refused.push({ id, failure: result })
      else copied.push({ id, ...result })
    }
    progress.close()
    if (flag(invocation, 'json')) {
      const problems = refused.map(({ id, failure }) => ({ id, error: errorMembers(failure) }))
      await printJson(io, snakeNames({ sessions: copied, refused: problems }))
    } else await write(io.stderr, conclusion(copied, refused, { to: toAddress }))
    return refused[0]?.failure.code ?? exitCodes.ok
  } finally {
    await to.close()
    await from.close()
  }
}

/** The side that is not given is the user's own sessions. */
async function addressesOf(invocation: Invocation, io: Io): Promise<[StoreAddress, StoreAddress]> {
  const [from, to] = [textOption(invocation, 'from'), textOption(invocation, 'to')]
  if (from === undefined && to === undefined) {
    throw usageFailure('Name the other store with --to or --from: a folder, or postgres://….', [
      'tapetree sessions copy --all --to postgres://app@localhost/sessions',
    ])
  }
  const { sessions } = placesOf(io)
  const addresses = [
    await storeAddress(from ?? sessions, { io, option: 'from' }),
    await storeAddress(to ?? sessions, { io, option: 'to' }),
  ] as const
  if (addresses[0].shown === addresses[1].shown) throw usageFailure('--from and --to are the same store.')
  return [...addresses]
}

/** The failure, if only this session is concerned. */
async function copyOne({
  from,
  to,
  id,
  dryRun,
}: {
  from: LogStore
  to: CopyTarget
  id: string
  dryRun: boolean
}): Promise<CopiedSession | Failure> {
  try {
    return await copySession({ from, to, sessionId: id, dryRun })
  } catch (error) {
    if (!(error instanceof SessionError) || error.code === 'storage-failed' || error.code === 'newer-format')
      throw error
    return failureOf(error)
  }
}

async function idsOf(references: readonly string[], from: LogStore, io: Io): Promise<string[]> {
  const store = new SessionStore(from)
  const ids = new Set<string>()
  for (const reference of references) ids.add(await idOf(store, reference, io))
  return [...ids]
}

/** Looks in the archive and the trash too. */
async function idOf(store: SessionStore, reference: string, { cwd }: Io): Promise<string> {
  const find = (place: Place): Promise<string> => findSession(store, reference, { cwd, place }).then(({ id }) => id)
  return find('active').catch(async (error: unknown) => {
    if (!(error instanceof Failure) || error.type !== 'session-not-found' || reference === 'last') throw error
    // The first error names similar sessions.
    return find('archive').catch(() => find('trash').catch(() => Promise.reject(error)))
  })
}

function conclusion(
  sessions: readonly CopiedSession[],
  refused: readonly Refused[],
  { to }: { to: StoreAddress },
): string {
  const count = (outcome: CopiedSession['outcome']): number =>
    sessions.filter((each) => each.outcome === outcome).length
  const would = count('would-copy')
  const first =
    would > 0 ? `${counted(would, 'session')} would be copied` : `Copied ${counted(count('copied'), 'session')}`
  const resumed = sessions.filter(({ resumedLines }) => resumedLines > 0).length
  const missing = sessions.reduce((sum, { missingBlobs }) => sum + missingBlobs, 0)
  return [
    ...refused.map(({ failure }) => harmlessLine(failure.message)),
    `${first} to ${to.shown}; ${counted(count('present'), 'was', 'were')} there already.`,
    ...(resumed > 0 ? [`${counted(resumed, 'copy', 'copies')} went on where an earlier one had stopped.`] : []),
    ...(missing > 0 ? [`The source does not have ${counted(missing, 'blob')} that its logs name.`] : []),
    ...(refused.length > 0 ? [`${counted(refused.length, 'session was', 'sessions were')} not copied.`] : []),
    '',
  ].join('\n')
}
