/** What a script learns from the end of a command. The numbers are a promise. */
export const exitCodes = {
  ok: 0,
  runFailed: 1,
  usage: 2,
  configuration: 3,
  noModel: 4,
  notFound: 5,
  ownedElsewhere: 6,
  damaged: 7,
  limitReached: 8,
  permissionNeeded: 9,
  interrupted: 130,
} as const

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

/** A sentence for each, for the documentation and the man page. */
export const exitCodeMeanings: readonly { code: ExitCode; meaning: string }[] = [
  { code: exitCodes.ok, meaning: 'All went well.' },
  { code: exitCodes.runFailed, meaning: 'The run failed, or the answer is not what was asked for.' },
  { code: exitCodes.usage, meaning: 'The command line is wrong.' },
  { code: exitCodes.configuration, meaning: 'A setting, or a file that it names, is wrong.' },
  { code: exitCodes.noModel, meaning: 'There are no credentials, or there is no such model.' },
  { code: exitCodes.notFound, meaning: 'The session, entry or file is not there.' },
  { code: exitCodes.ownedElsewhere, meaning: 'Another process owns the session and cannot be reached.' },
  { code: exitCodes.damaged, meaning: 'A log is damaged.' },
  { code: exitCodes.limitReached, meaning: 'A limit on turns, cost or time was reached.' },
  { code: exitCodes.permissionNeeded, meaning: 'A permission is needed and there is nobody to ask.' },
  { code: exitCodes.interrupted, meaning: 'It was interrupted.' },
]
