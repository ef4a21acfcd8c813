import type { Requirement } from '../requirement.ts'

/** Recording, ownership and observers. */
export const recording = [
  {
    id: 'session-management/recording start',
    says: 'Starting a session creates its folder and its files.',
    lines: { 'Session Recording Flow': ['6f67064c'], 'Session Lifecycle': ['2ee80c09'] },
    settled: '`store.create` starts a session; there is no separate recorder.',
  },
  {
    id: 'session-management/recording prompt',
    says: 'The log records each user prompt.',
    lines: { 'Session Recording Flow': ['73acfdc8'] },
  },
  {
    id: 'session-management/recording message',
    says: 'The log records each assistant message.',
    lines: { 'Session Recording Flow': ['f611404b'] },
  },
  {
    id: 'session-management/recording tool-call',
    says: 'The log records each tool call.',
    lines: { 'Session Recording Flow': ['5228b3f0'] },
  },
  {
    id: 'session-management/recording permission',
    says: 'The log records each permission request.',
    lines: { 'Session Recording Flow': ['4cd9a344'] },
  },
  {
    id: 'session-management/recording end',
    says: 'Ending a session marks it as completed.',
    lines: { 'Session Recording Flow': ['3df07e20'], 'Session Lifecycle': ['df333b8e'] },
    settled: 'The record `session_end` does this; the session can continue after it.',
  },
  {
    id: 'session-management/recording events-file',
    says: 'Events are appended to `events.jsonl`.',
    lines: { 'Session Recording Flow': ['f99597de'], 'Session Lifecycle': ['b159d49b'] },
  },
  {
    id: 'session-management/recording metadata-file',
    says: 'The store writes `metadata.json`.',
    lines: { 'Session Recording Flow': ['87bcc128'] },
    settled: 'The file is a copy derived from the log; a missing copy is rebuilt.',
  },
  {
    id: 'session-management/playback reads',
    says: 'A player reads recorded events to review or replay them.',
    lines: { 'Session Recording Flow': ['c4fbeb3c'], 'Session Lifecycle': ['1280f047'] },
  },
  {
    id: 'session-management/playback metadata',
    says: 'A player can read the session metadata.',
    lines: { 'Session Recording Flow': ['07edb5b6'] },
    settled: 'The player folds the metadata from the log.',
  },
  {
    id: 'session-management/playback navigation',
    says: 'A player can step forward, seek and reset.',
    lines: { 'Session Recording Flow': ['9f0cc215'] },
  },
  {
    id: 'session-management/event session_start',
    says: 'The start of a session is an event with metadata.',
    lines: { 'Event Types': ['ac49a786'] },
  },
  {
    id: 'session-management/event session_end',
    says: 'The end of a session is an event with a reason.',
    lines: { 'Event Types': ['0527efcb'] },
  },
  {
    id: 'session-management/event user_prompt',
    says: 'User input is an event.',
    lines: { 'Event Types': ['260a74b1'] },
  },
  {
    id: 'session-management/event agent_message',
    says: 'The text of an agent response is an event.',
    lines: { 'Event Types': ['6780ec39'] },
  },
  {
    id: 'session-management/event agent_thought',
    says: 'Agent reasoning is an event.',
    lines: { 'Event Types': ['7c887456'] },
  },
  {
    id: 'session-management/event tool_call',
    says: 'A tool call is an event.',
    lines: { 'Event Types': ['5b624299'] },
  },
  {
    id: 'session-management/event tool_call_update',
    says: 'A status change of a tool call is an event.',
    lines: { 'Event Types': ['18666887'] },
  },
  {
    id: 'session-management/event plan',
    says: 'A plan of the agent is an event.',
    lines: { 'Event Types': ['504b346f'] },
  },
  {
    id: 'session-management/event permission',
    says: 'A permission request and its answer are events.',
    lines: { 'Event Types': ['82583ff8'] },
  },
  {
    id: 'session-management/event file_read',
    says: 'Reading a file is an event.',
    lines: { 'Event Types': ['1d58634e'] },
  },
  {
    id: 'session-management/event file_write',
    says: 'Writing a file is an event.',
    lines: { 'Event Types': ['c45767e1'] },
  },
  { id: 'session-management/event error', says: 'An error is an event.', lines: { 'Event Types': ['f0acbcd4'] } },
  {
    id: 'session-management/owner store',
    says: 'The store owns metadata, events and file access, and no runtime state.',
    lines: { 'Session State Ownership Model': ['278888a1'], 'Component Responsibilities': ['87628a3c'] },
  },
  {
    id: 'session-management/owner background-session',
    says: 'A live session owns observers, prompt state and buffers, and stores through the store.',
    lines: {
      'Session State Ownership Model': ['76b8ecde'],
      'Component Responsibilities': ['bb88b65b'],
      'State Flow': ['9a57e118'],
    },
    settled: '`LiveSession` does this and drives the agent through a driver interface.',
  },
  {
    id: 'session-management/owner acp-process',
    says: 'A background session owns an ACP process.',
    lines: { 'Component Responsibilities': ['bb88b65b'] },
    settled: '`AcpAgent` owns the process, and the driver of the live session closes it.',
  },
  {
    id: 'session-management/owner session-manager',
    says: 'A registry owns the running sessions and their limits and creates them.',
    lines: {
      'Session State Ownership Model': ['e8e8025a'],
      'Component Responsibilities': ['e7ee0376'],
      'State Flow': ['f5724ee0'],
    },
    settled: '`LiveSessions` is the registry.',
  },
  {
    id: 'session-management/owner ws-client',
    says: 'A WebSocket client owns its socket and its permission answers, not the session.',
    lines: { 'Session State Ownership Model': ['d8ea75d7'], 'Component Responsibilities': ['fbf82297'] },
  },
  {
    id: 'session-management/owner frontend',
    says: 'A front end owns only what it displays.',
    lines: { 'Session State Ownership Model': ['df8e4d96'], 'Component Responsibilities': ['0b016461'] },
  },
  {
    id: 'session-management/flow observers',
    says: 'A live session notifies its observers without depending on WebSocket clients.',
    lines: { 'State Flow': ['a80db82d'], 'Observer Pattern': ['7bdd8332'] },
    settled: 'Observers pull data; a notification only wakes them.',
  },
  {
    id: 'session-management/flow screens',
    says: 'An observer forwards events to a screen over WebSocket.',
    lines: { 'State Flow': ['af9603a1'] },
  },
  {
    id: 'session-management/observer message',
    says: 'Observers receive assistant text.',
    lines: { 'Observer Pattern': ['1ad9035d'] },
    settled: 'Text travels as Markdown; only the screen makes HTML.',
  },
  {
    id: 'session-management/observer thought',
    says: 'Observers receive reasoning text.',
    lines: { 'Observer Pattern': ['9ea53721'] },
    settled: 'The log line and the live text carry this; every screen folds them in the same way.',
  },
  {
    id: 'session-management/observer tool-call',
    says: 'Observers see a tool call with its id, title and status.',
    lines: { 'Observer Pattern': ['9efc26a0'] },
    settled: 'The log line and the live text carry this; every screen folds them in the same way.',
  },
  {
    id: 'session-management/observer tool-update',
    says: 'Observers see each status change of a tool call.',
    lines: { 'Observer Pattern': ['21d3a0aa'] },
    settled: 'The log line and the live text carry this; every screen folds them in the same way.',
  },
  {
    id: 'session-management/observer plan',
    says: 'Observers see plans.',
    lines: { 'Observer Pattern': ['d242a322'] },
    settled: 'The log line and the live text carry this; every screen folds them in the same way.',
  },
  {
    id: 'session-management/observer file-write',
    says: 'Observers see file writes with path and size.',
    lines: { 'Observer Pattern': ['da5a581e'] },
    settled: 'The log line and the live text carry this; every screen folds them in the same way.',
  },
  {
    id: 'session-management/observer file-read',
    says: 'Observers see file reads with path and size.',
    lines: { 'Observer Pattern': ['6bdf96d8'] },
    settled: 'The log line and the live text carry this; every screen folds them in the same way.',
  },
  {
    id: 'session-management/observer permission',
    says: 'Observers receive permission requests and can answer them.',
    lines: { 'Observer Pattern': ['71e67aaa'] },
    settled: 'A request is a record; the first answer from any screen wins.',
  },
  {
    id: 'session-management/observer complete',
    says: 'Observers learn when a prompt is complete.',
    lines: { 'Observer Pattern': ['6a6e3b62'] },
    settled: 'The log line and the live text carry this; every screen folds them in the same way.',
  },
  {
    id: 'session-management/observer error',
    says: 'Observers receive error messages.',
    lines: { 'Observer Pattern': ['8dd28cb9'] },
    settled: 'The log line and the live text carry this; every screen folds them in the same way.',
  },
  {
    id: 'session-management/observer client-id',
    says: 'Each observer has a client id.',
    lines: { 'Observer Pattern': ['404d4a98'] },
  },
  {
    id: 'session-management/observers tabs',
    says: 'Several clients can observe one session at the same time.',
    lines: { 'Observer Pattern': ['12c4d149', '218b3a7e'] },
  },
  {
    id: 'session-management/observers browser-tabs',
    says: 'Several browser tabs can show the same session.',
    lines: { 'Observer Pattern': ['218b3a7e'] },
    settled:
      'The web app is a client like any other; `npm run proof web-app` drives it in Chromium, with several browsers on one session.',
  },
  {
    id: 'session-management/observers none',
    says: 'A session keeps running without any connected client.',
    lines: { 'Observer Pattern': ['8def35e5'] },
  },
  {
    id: 'session-management/observers return',
    says: 'A reconnecting client receives only what it missed.',
    lines: { 'Observer Pattern': ['d25bb060'] },
  },
] as const satisfies readonly Requirement[]
