import * as Popover from "@radix-ui/react-popover";
import { startTransition, useOptimistic } from "react";

interface Props<Name extends string> {
  /** What is chosen from, and how many of them are. */
  label: string;
  summary: string;
  names: readonly Name[];
  chosen: readonly Name[];
  words?: (name: Name) => string;
  /** Is done once `chosen` has followed, until which a tick stands as it was made. */
  onChange: (names: Name[]) => Promise<void>;
}

/** Metrics or axes that are shown, ticked in a list. */
export function Choice<Name extends string>({
  label, summary, names, chosen, words = String, onChange,
}: Props<Name>) {
  const [ticked, setTicked] = useOptimistic(chosen);
  const tick = (name: Name, on: boolean) => {
    const next = names.filter((one) => (one === name ? on : ticked.includes(one)));
    startTransition(async () => {
      setTicked(next);
      await onChange(next);
    });
  };
  return (
    <Popover.Root>
      <Popover.Trigger className="button small">{summary}</Popover.Trigger>
      <Popover.Portal>
        <Popover.Content className="popover metric-choice" align="end" sideOffset={4} aria-label={label}>
          {names.map((name) => (
            <label key={name}>
              <input
                type="checkbox"
                checked={ticked.includes(name)}
                onChange={({ target }) => tick(name, target.checked)}
              />
              {words(name)}
            </label>
          ))}
        </Popover.Content>
      </Popover.Portal>
    </Popover.Root>
  );
}
