import type { LoadedSettings, ProjectTrust, Resources } from '@tapetree/agent/settings'

/** What the child is to do in one repository, and where. All paths are absolute. */
export interface Visit {
  root: string
  /** Where in the repository somebody works. */
  cwd: string
  home: string
  /** Of the session store. */
  sessions: string
  /** A session of this repository with a run whose process died. */
  sessionId: string
  /** Whether the user says yes when they are asked about the repository; without it nobody is asked. */
  isTrusted?: boolean
  /** Files that do not exist: that the child looks for one is seen in the trace. */
  marks: { begin: string; prompt: string }
}

/** What the child saw there. */
export interface Visited {
  state: ProjectTrust['state']
  settings: Pick<LoadedSettings, 'values' | 'rules' | 'problems'>
  resources: Resources
  problems: string[]
  listed: string[]
  /** What was said about each open matter of the run. */
  plan: string[]
  ends: string[]
  /** What went to the model when the run was resumed, and when somebody prompted in a new session. */
  requests: { resumed: string[]; prompted: string[] }
}
