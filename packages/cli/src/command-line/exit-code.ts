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
export const exitCodeMeanings: Readonly<Record<ExitCode, string>> = {
  [exitCodes.ok]: 'The command succeeded.',
  [exitCodes.runFailed]: 'The run failed, or the answer does not match what was requested.',
  [exitCodes.usage]: 'The command line is invalid.',
  [exitCodes.configuration]: 'A setting, or a file that it names, is invalid.',
  [exitCodes.noModel]: 'Credentials are missing, or the model does not exist.',
  [exitCodes.notFound]: 'The session, entry or file does not exist.',
  [exitCodes.ownedElsewhere]: 'Another process owns the session and cannot be reached.',
  [exitCodes.damaged]: 'A log is damaged.',
  [exitCodes.limitReached]: 'A limit on turns, cost or time was reached.',
  [exitCodes.permissionNeeded]: 'A permission is required and no user can grant it.',
  [exitCodes.interrupted]: 'The command was interrupted.',
}
