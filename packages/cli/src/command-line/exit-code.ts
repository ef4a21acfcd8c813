/** What a script learns from the end of a command. The numbers never change their meaning. */
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

/** One sentence for each code, for the documentation and the man page. */
export const exitCodeMeanings: readonly { code: ExitCode; meaning: string }[] = [
  { code: exitCodes.ok, meaning: 'The command succeeded.' },
  { code: exitCodes.runFailed, meaning: 'The run failed, or the answer does not match what was requested.' },
  { code: exitCodes.usage, meaning: 'The command line is invalid.' },
  { code: exitCodes.configuration, meaning: 'A setting, or a file that it names, is invalid.' },
  { code: exitCodes.noModel, meaning: 'Credentials are missing, or the model does not exist.' },
  { code: exitCodes.notFound, meaning: 'The session, entry or file does not exist.' },
  { code: exitCodes.ownedElsewhere, meaning: 'Another process owns the session and cannot be reached.' },
  { code: exitCodes.damaged, meaning: 'A log is damaged.' },
  { code: exitCodes.limitReached, meaning: 'A limit on turns, cost or time was reached.' },
  { code: exitCodes.permissionNeeded, meaning: 'A permission is required and no user can grant it.' },
  { code: exitCodes.interrupted, meaning: 'The command was interrupted.' },
]
