import { ProblemError, type RestClient } from '@tapetree/client'
import { systemClock } from '@tapetree/session/util/wait'
import { basename } from 'node:path'
import { usageFailure } from '../../command-line/failure.ts'
import type { Io } from '../../command-line/io.ts'
import type { KnownServer } from '../../host/known-servers.ts'
import { offerFolders, type Offer } from '../../host/offer-folder.ts'
import { harmlessLine } from '../../text/harmless.ts'

export interface OfferHereOptions {
  server: KnownServer
  sessionId: string | undefined
  /** Writes the files that the session has kept into the folder. */
  recreate: boolean
  rest: Pick<RestClient, 'setWorkspace'>
  io: Pick<Io, 'cwd' | 'home' | 'env'>
  /** The screen is closed. */
  signal: AbortSignal
}

/** A service with several servers tells all of them within seconds which hosts are connected. */
const patienceMs = 10_000
const againMs = 250

/** Lets the tools of a session work in this folder, until the screen is closed. */
export async function offerHere({
  server,
  sessionId,
  recreate,
  rest,
  io,
  signal,
}: OfferHereOptions): Promise<Pick<Offer, 'ended'>> {
  if (sessionId === undefined) {
    throw usageFailure('--here needs a session of the server.', [
      `tapetree attach ${harmlessLine(server.url)} last --here`,
    ])
  }
  const name = basename(io.cwd) || 'root'
  const failed = new AbortController()
  const { host, connected, ended } = await offerFolders({
    server,
    io,
    workspaces: { [name]: io.cwd },
    // It is lent, not given.
    sharesFiles: false,
    signal: AbortSignal.any([signal, failed.signal]),
    // The screen shows whether the folder can be reached.
    onChange: () => undefined,
  })
  ended.catch(() => undefined)
  try {
    await connected
    await whenKnown(() => rest.setWorkspace(sessionId, { host: host.hello.id, workspace: name, recreate }), signal)
    return { ended }
  } catch (error) {
    failed.abort()
    await ended.catch(() => undefined)
    throw error
  }
}

/** The server that gets the request may hear a moment later that the host is connected. */
async function whenKnown(work: () => Promise<unknown>, signal: AbortSignal): Promise<void> {
  for (const begun = performance.now(); ;) {
    try {
      await work()
      return
    } catch (error) {
      const isUnknown = error instanceof ProblemError && error.type === 'tool-host-not-found'
      if (!isUnknown || performance.now() - begun > patienceMs) throw error
    }
    await systemClock.wait(againMs, signal)
  }
}
