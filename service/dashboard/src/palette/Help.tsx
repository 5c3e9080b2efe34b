import { KEYS, LOCAL_KEYS } from "./keys";

/** The keys, with what each does. */
export default function Help() {
  return (
    <dl className="keys">
      {[...KEYS, ...LOCAL_KEYS].map(({ keys, does }) => (
        <div key={does}>
          <dt>{keys.map((key) => <kbd key={key}>{key}</kbd>)}</dt>
          <dd>{does}</dd>
        </div>
      ))}
    </dl>
  );
}
