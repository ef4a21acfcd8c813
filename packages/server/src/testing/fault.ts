/** Bugs of a server with many screens, each with the protocol invariant that must catch it. */
export const faults = {
  'a line is sent in other bytes than it is stored in': 'I1',
  'frame before durable': 'I2',
  'a line skipped for a slow client': 'I3',
  'a line sent twice after resume': 'I3',
  'an await between reading the head and registering': 'I3',
  'a change of state that one screen is not told': 'I4',
  'partial text left after its item is complete': 'I5',
  'a delta that splits a surrogate pair': 'I5',
  'ack before durable': 'I6',
  'a resent command run twice': 'I6',
  'command ids not rebuilt after a restart': 'I6',
  'cancel that hits the next run': 'I6',
  'a permission resolved twice': 'I7',
  'a tool started before its permission': 'I7',
  'a submission dequeued before its message is appended': 'I8',
  'a socket that is filled without a bound': 'I9',
  'a stalled client that holds the others up': 'I10',
  'a cursor taken whose line differs': 'I11',
  'a snapshot that lacks a line': 'I12',
  'a line of a run after its run_end': 'I13',
  'presence of who has left': 'I14',
  'lines of unknown types not passed on': 'I15',
} as const

export type Fault = keyof typeof faults

export const faultNames = Object.keys(faults) as Fault[]
