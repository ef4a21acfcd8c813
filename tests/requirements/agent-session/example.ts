import type { Requirement } from '../requirement.ts'

/** Section 10: the usage example. */
export const example = [
  {
    id: 'agent-session/10 new-manager',
    quote: '// 1. Initialize Dependencies\nmgr := session.NewManager("./sessions")',
    settled: 'DESIGN 6: `openFileStore({ folder })`.',
  },
  {
    id: 'agent-session/10 continue-recent',
    quote: '// 2. Load or Create Session (Data Layer)\nsess, err := mgr.ContinueRecent()',
  },
  {
    id: 'agent-session/10 new-if-there-is-none',
    quote: 'if err != nil {\nsess, _ = mgr.New("")',
    settled: '`continueRecent` rejects with `session-not-found` where there is none.',
  },
  { id: 'agent-session/10 close-session', quote: 'defer sess.Close()' },
  {
    id: 'agent-session/10 binds',
    quote:
      '// 3. Initialize Agent Orchestrator\n// This layer binds the agent logic to the session persistence\ncfg := session.AgentSessionConfig{\nManager: sess,\nAgent: agent.New(),\nagentSession := session.NewAgentSession(cfg)',
    settled: '`AgentSession.open({ store, sessionId, models })`.',
  },
  { id: 'agent-session/10 cwd', quote: 'Cwd: "/path/to/project",' },
  { id: 'agent-session/10 close', quote: 'defer agentSession.Close()' },
  {
    id: 'agent-session/10 prompt',
    quote:
      '// 4. Interactive Prompt Loop\n// Send a standard user prompt\nerr = agentSession.Prompt(ctx, "Refactor main.go to use the new logger.", session.PromptOptions{})',
  },
  { id: 'agent-session/10 expands', quote: '// The AgentSession handles:\n// - Expanding skills/templates' },
  { id: 'agent-session/10 streams', quote: '// - Streaming the response to the LLM (internal loop)' },
  {
    id: 'agent-session/10 persists',
    quote: '// - Persisting message_start/message_end events to the session file',
    settled: 'DESIGN 3: a finished message is one entry; its text is in the draft before that.',
  },
  { id: 'agent-session/10 executes-tools', quote: '// - Executing tools (e.g., read_file, bash)' },
  {
    id: 'agent-session/10 prompt-failed',
    quote: 'log.Fatalf("Prompt failed: %v", err)',
    settled: 'A prompt that cannot be sent rejects; a run that failed says so in `run.done` and in the log.',
  },
  {
    id: 'agent-session/10 keys',
    quote: '// 5. Simulate an Interrupt (Steering)\n// If the user presses Ctrl+C or types while the tool is running,',
    settled: 'Ctrl-C stops the run. What is typed steers it with Alt-Enter, and waits its turn with Enter.',
  },
  {
    id: 'agent-session/10 steer-injects',
    quote: '// we call Steer() to inject a high-priority message.',
  },
  {
    id: 'agent-session/10 steer-skips',
    quote:
      '// This will cause the internal RunLoop to skip remaining tools and\n// immediately address this new instruction.',
  },
  {
    id: 'agent-session/10 steer-call',
    quote:
      'go func() {\n// Simulate user typing "Wait, check for errors first"\nagentSession.Steer("Wait, check for errors first")',
  },
  {
    id: 'agent-session/10 compact',
    quote:
      '// 6. Manual Compaction\n// If the context gets too long, we can manually trigger compaction\nresult, err := agentSession.Compact("Summarize the debugging steps so far.")',
  },
  {
    id: 'agent-session/10 compact-result',
    quote:
      'fmt.Printf("Compacted! Kept from ID: %s, Summary: %s\\n", result.FirstKeptID, result.Summary)\nif err == nil {',
  },
] as const satisfies Requirement[]
