import type { SnapshotFold, Transcript } from './transcript.ts'

/** What a transcript says beside its path: a snapshot with it and the newest lines begins where this transcript is. */
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
