import type { SnapshotFold, Transcript } from './transcript.ts'

/**
 * The fold of a transcript without its path. A snapshot with this fold and the newest lines starts at the same
 * state.
 */
export function foldOfTranscript(transcript: Transcript): SnapshotFold {
  const { header, name, labels, waiting, hold, permissions, run, lastRun, lastError, plan, usage, damage } = transcript
  return {
    header,
    name,
    labels: [...labels],
    waiting,
    hold,
    permissions,
    run,
    lastRun,
    lastError,
    plan,
    usage,
    damage,
    ended: transcript.ended,
    running: [...transcript.path.running],
  }
}
