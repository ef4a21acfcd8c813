import type { Requirement } from '../requirement.ts'

/** Section 10: the usage example. */
export const example = [
  {
    id: 'agent-session/10 new-manager',
    says: 'A program opens a store in a folder.',
    lines: { '10. Usage Example': ['cf02ad7d', '8182d1ac'] },
    settled: '`openFileStore({ folder })`.',
  },
  {
    id: 'agent-session/10 continue-recent',
    says: 'A program continues the most recent session.',
    lines: { '10. Usage Example': ['02128a4d', '5abcdc5f'] },
  },
  {
    id: 'agent-session/10 new-if-there-is-none',
    says: 'A program creates a session if none exists.',
    lines: { '10. Usage Example': ['04bbeda4', '0de1855f'] },
    settled: '`continueRecent` rejects with `session-not-found`.',
  },
  {
    id: 'agent-session/10 close-session',
    says: 'A program closes the session.',
    lines: { '10. Usage Example': ['1ac489ab'] },
  },
  {
    id: 'agent-session/10 binds',
    says: 'A program connects the agent with the stored session.',
    lines: { '10. Usage Example': ['9c25cfdc', '81ab6997', 'b4143002', '77cef4ec', 'cb8a8c01', '184e5629'] },
    settled: '`AgentSession.open({ store, sessionId, models })`.',
  },
  {
    id: 'agent-session/10 cwd',
    says: 'A program sets the working directory.',
    lines: { '10. Usage Example': ['cbb5f90f'] },
  },
  {
    id: 'agent-session/10 close',
    says: 'A program closes the agent session.',
    lines: { '10. Usage Example': ['e9e229b1'] },
  },
  {
    id: 'agent-session/10 prompt',
    says: 'A program sends a prompt.',
    lines: { '10. Usage Example': ['2dab7e7e', 'c9600d20', 'f6b92094'] },
  },
  {
    id: 'agent-session/10 expands',
    says: 'The prompt expands skills and templates.',
    lines: { '10. Usage Example': ['c0707b3d', '39719049'] },
  },
  {
    id: 'agent-session/10 streams',
    says: 'The prompt streams the response.',
    lines: { '10. Usage Example': ['aa3d3770'] },
  },
  {
    id: 'agent-session/10 persists',
    says: 'The prompt persists its messages.',
    lines: { '10. Usage Example': ['c8e2c2ab'] },
    settled: 'A finished message is one entry; its text is in the draft before that.',
  },
  {
    id: 'agent-session/10 executes-tools',
    says: 'The prompt executes tools.',
    lines: { '10. Usage Example': ['21390765'] },
  },
  {
    id: 'agent-session/10 prompt-failed',
    says: 'A program learns that a prompt failed.',
    lines: { '10. Usage Example': ['47ed381a'] },
    settled: 'A prompt that cannot be sent rejects; a failed run reports it in `run.done` and in the log.',
  },
  {
    id: 'agent-session/10 keys',
    says: 'A key press or typed text can interrupt a running tool.',
    lines: { '10. Usage Example': ['8f3b8340', '24c2ea3b'] },
    settled: 'Ctrl-C stops the run. Alt-Enter steers with the typed text; Enter queues it.',
  },
  {
    id: 'agent-session/10 steer-injects',
    says: '`steer` injects a message with high priority.',
    lines: { '10. Usage Example': ['93ee6aa4'] },
  },
  {
    id: 'agent-session/10 steer-skips',
    says: 'A steer skips the remaining tools, and the model answers it at once.',
    lines: { '10. Usage Example': ['2699f8b5', '501f4698'] },
  },
  {
    id: 'agent-session/10 steer-call',
    says: 'A program can steer while a run is in progress.',
    lines: { '10. Usage Example': ['9c5ddf0d', '47107891', '6f33833b'] },
  },
  {
    id: 'agent-session/10 compact',
    says: 'A program compacts with instructions.',
    lines: { '10. Usage Example': ['cc09e0c5', '568f5105', 'b68af7a3'] },
  },
  {
    id: 'agent-session/10 compact-result',
    says: 'The result of a compaction has its summary and the first kept entry.',
    lines: { '10. Usage Example': ['362d0e22', 'ca6b720e'] },
  },
] as const satisfies readonly Requirement[]
